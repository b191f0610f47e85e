package domain

import (
	"fmt"
	"math"
)

// What a step costs in AutoParts, in units of points copied in one piece.
// Measured on NVLink, a message takes 5 us before its first byte arrives, in
// which a GPU sends some 2^18 doubles and sweeps four times as many points. Faces
// of the slowest axis travel as they lie; the others are packed and unpacked,
// those across rows with one useful element a transaction.
const (
	sweepCost      = 0.25
	messageCost    = 1 << 18
	contiguousCost = 1
	packedCost     = 3
	stridedCost    = 6
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
	if math.IsInf(bestCost, 1) {
		return Vec{}, fmt.Errorf("domain: no cut of %v points into %d parts leaves each the layers its neighbours need", g.Size, n)
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
			if d, err := Decompose(g, parts); err == nil && d.CheckWidth(w) == nil {
				all = append(all, cut{parts, d.largest(), d.cost(w)})
			}
		}
	}
	return all
}

// largest returns how many points the largest subdomain owns.
func (d *Decomposition) largest() (points int64) {
	for _, s := range d.Subdomains {
		points = max(points, s.Box.Points())
	}
	return points
}

// cost returns the cost of a step of the busiest subdomain, which sweeps its points and
// sends its messages.
func (d *Decomposition) cost(w Radius) float64 {
	worst := 0.0
	for _, s := range d.Subdomains {
		sum := sweepCost * float64(s.Box.Points())
		for _, dir := range Faces(d.Grid.Dims) {
			if _, ok := d.Neighbour(s.Rank, dir); ok {
				points := SendBox(s.Box, dir, w).Points()
				sum += messageCost + float64(points)*axisCost(dir.Axis(), d.Grid.Dims)
			}
		}
		worst = max(worst, sum)
	}
	return worst
}

func axisCost(axis, dims int) float64 {
	switch axis {
	case dims - 1:
		return contiguousCost
	case 0:
		return stridedCost
	}
	return packedCost
}
