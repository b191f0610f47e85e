package domain

import (
	"fmt"
	"math"
)

// What a message costs in AutoParts, in units of points copied in one piece.
// Measured on NVLink, a message takes 5 us before its first byte arrives, in
// which a GPU sends some 2^18 doubles. Faces of the slowest axis travel as
// they lie; the others are packed and unpacked, those across rows with one
// useful element a transaction.
const (
	messageCost    = 1 << 18
	contiguousCost = 1
	packedCost     = 3
	stridedCost    = 6
)

// AutoParts returns the cut of the grid into n subdomains under which the
// busiest of them has the cheapest messages in a face exchange of width w;
// among equals the one that cuts the slowest axis most. It is an error if no
// cut gives every subdomain the layers that its neighbours need.
func AutoParts(g Grid, n int, w Radius) (Vec, error) {
	if n < 1 {
		return Vec{}, fmt.Errorf("domain: cannot cut a grid into %d parts", n)
	}
	best, bestCost := Vec{}, math.Inf(1)
	for px := 1; px <= n; px++ {
		for py := 1; n%px == 0 && py <= n/px; py++ {
			parts := Vec{px, py, n / px / py}
			if parts.Product() != int64(n) {
				continue
			}
			d, err := Decompose(g, parts)
			if err != nil || d.CheckWidth(w) != nil {
				continue
			}
			if cost := d.cost(w); cost < bestCost {
				best, bestCost = parts, cost
			}
		}
	}
	if math.IsInf(bestCost, 1) {
		return Vec{}, fmt.Errorf("domain: no cut of %v points into %d parts leaves each the layers its neighbours need", g.Size, n)
	}
	return best, nil
}

// cost returns the cost of the messages that the busiest subdomain sends.
func (d *Decomposition) cost(w Radius) float64 {
	worst := 0.0
	for _, s := range d.Subdomains {
		sum := 0.0
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
