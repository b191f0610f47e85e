package domain

import (
	"fmt"
	"math"
)

// maxImbalance is how many times the points of the best balanced cut the largest
// subdomain of another may own.
const maxImbalance = 1.1

// AutoParts returns the cut of the grid into n subdomains under which the busiest of
// them has the cheapest step: its sweep, and its messages in a face exchange of
// width w. Cuts whose largest subdomain owns over 10% more points than that of the best
// balanced cut are left out. Among equals it is the one that cuts the slowest axis
// most. It is an error if no cut gives every subdomain the layers that its neighbours
// need.
func AutoParts(g Grid, n int, w Radius) (Vec, error) {
	if n < 1 || n > maxParts {
		return Vec{}, fmt.Errorf("domain: cannot cut a grid into %d parts: 1 to %d are possible", n, maxParts)
	}
	cuts := cutsInto(g, n, w)
	balanced := int64(math.MaxInt64)
	for _, c := range cuts {
		balanced = min(balanced, c.largest)
	}
	best, bestCost := Vec{}, math.Inf(1)
	for _, c := range cuts {
		if float64(c.largest) <= maxImbalance*float64(balanced) && c.cost < bestCost {
			best, bestCost = c.parts, c.cost
		}
	}
	if math.IsInf(bestCost, 1) && n == 1 {
		return Vec{}, fmt.Errorf("domain: %v points are fewer layers than ghosts around a periodic axis need", g.along(g.Size))
	}
	if math.IsInf(bestCost, 1) {
		return Vec{}, fmt.Errorf("domain: no cut of %v points into %d parts leaves each the layers its neighbours need", g.along(g.Size), n)
	}
	return best, nil
}

// cut is one way to cut a grid.
type cut struct {
	parts   Vec
	largest int64   // points of the largest subdomain
	cost    float64 // of a step
}

// cutsInto returns the cuts of the grid into n subdomains that leave each the layers that
// its neighbours need, those first that cut the slowest axis most.
func cutsInto(g Grid, n int, w Radius) (all []cut) {
	for px := 1; px <= n; px++ {
		for py := 1; n%px == 0 && py <= n/px; py++ {
			parts := Vec{px, py, n / px / py}
			if parts.Product() != int64(n) {
				continue
			}
			if s, ok := sizes(g, parts, w); ok {
				all = append(all, cut{parts, s.largest, s.cost})
			}
		}
	}
	return all
}
