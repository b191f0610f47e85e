package domain

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is found of a cut by its kinds of parts is what a look at each of its parts finds.
func TestKindsOfPartsAreAllParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(2, 3).Draw(t, "dims")
		var size []int
		var periodic [3]bool
		var w Radius
		outer, inner, parts := Vec{1, 1, 1}, Vec{1, 1, 1}, Vec{1, 1, 1}
		for a := range dims {
			size = append(size, rapid.IntRange(1, 40).Draw(t, "size"))
			periodic[a] = rapid.Bool().Draw(t, "periodic")
			w.Minus[a], w.Plus[a] = rapid.IntRange(0, 3).Draw(t, "minus"), rapid.IntRange(0, 3).Draw(t, "plus")
			outer[a], inner[a] = rapid.IntRange(1, 5).Draw(t, "outer"), rapid.IntRange(1, 4).Draw(t, "inner")
			parts[a] = outer[a] * inner[a]
		}
		g, err := NewGrid(size, periodic)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := sizes(g, parts, w)
		d, err := Decompose(g, parts)
		if err == nil {
			err = d.CheckWidth(w)
		}
		if ok != (err == nil) {
			t.Fatalf("%v of %v, width %v: %t, %v", parts, size, w, ok, err)
		}
		if !ok {
			return
		}
		want := sized{}
		for _, s := range d.Subdomains {
			cost := sweepCost * float64(s.Box.Points())
			for _, dir := range Faces(dims) {
				if _, ok := d.Neighbour(s.Rank, dir); ok {
					cost += messageCost + float64(SendBox(s.Box, dir, w).Points())*axisCost(dir.Axis(), dims)
				}
			}
			want.largest, want.cost = max(want.largest, s.Box.Points()), max(want.cost, cost)
		}
		if got.largest != want.largest || math.Abs(got.cost-want.cost) > 1e-9*want.cost {
			t.Errorf("%v of %v: %+v, want %+v", parts, size, got, want)
		}
		if got, want := between(g, parts, inner, w), betweenHosts(d, inner, w); got != want {
			t.Errorf("%v of %v over hosts of %v: %d points between hosts, want %d", parts, size, inner, got, want)
		}
	})
}

// betweenHosts counts by subdomains.
func betweenHosts(d *Decomposition, inner Vec, w Radius) (most int64) {
	points := map[Vec]int64{}
	for _, s := range d.Subdomains {
		for _, dir := range Faces(d.Grid.Dims) {
			to, ok := d.Neighbour(s.Rank, dir)
			if host := BlockOf(s.Coord, inner); ok && BlockOf(d.Subdomains[to].Coord, inner) != host {
				points[host] += SendBox(s.Box, dir, w).Points()
				most = max(most, points[host])
			}
		}
	}
	return most
}

// A grid is cut over 10,000 hosts in no time.
func TestNestedPartsOfManyHosts(t *testing.T) {
	g, err := NewGrid([]int{20000, 20000, 20000}, [3]bool{true, true, true})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	outer, inner, err := NestedParts(g, 10000, 8, UniformRadius(3, 1))
	if err != nil || outer.Product() != 10000 || inner.Product() != 8 {
		t.Errorf("%v %v %v", outer, inner, err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	} else {
		t.Log(took, outer, inner)
	}
}
