package halo_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// A field that is constant along axes has the values that it is filled with, in less memory, and is not exchanged.
func TestConstantFields(t *testing.T) {
	set := testdevices.Host(t, 4)
	p := place(t, set, []int{40, 200, 10}, [3]bool{true, false, true}, domain.Vec{1, 2, 2})
	width := domain.UniformRadius(3, 2)
	links := set.Links
	for _, c := range []struct {
		constant []bool
		bytes    int64 // of each of 4 subdomains: rows of 48 points with ghosts, or a number per row
	}{{[]bool{false, true, false}, 8 * (48*9 + 32)}, {[]bool{false, false, true}, 8 * (48*104 + 32)}, {[]bool{false, true, true}, 8 * 80},
		{[]bool{true, false, false}, 8 * 9 * 104}, {[]bool{true, true, false}, 8 * 9}, {[]bool{true, false, true}, 8 * 104}, {[]bool{true, true, true}, 8}} {
		t.Run(fmt.Sprint(c.constant), func(t *testing.T) {
			u := openField(t, p, halo.Spec{Name: "k", Element: halo.Float64, Width: width, Constant: c.constant})
			want := func(q domain.Vec) float64 {
				v := 0.5
				for a, constant := range c.constant {
					if !constant {
						v += float64(q[a]) * []float64{1, 100, 1000}[a]
					}
				}
				return v
			}
			test.Check(t, halo.FillPoints(u, want))
			for rank, part := range u.Parts {
				l := part.Layout
				if l.Bytes() != c.bytes {
					t.Errorf("subdomain %d has %d bytes, want %d", rank, l.Bytes(), c.bytes)
				}
				box := l.Owned.Grow(width)
				plane := box
				plane.Hi[1] = plane.Lo[1] + 1
				for _, box := range []domain.Box{box, plane} {
					values := make([]float64, box.Points())
					test.Check(t, halo.ReadSubdomain(values, u, rank, box))
					i := 0
					for z := box.Lo[2]; z < box.Hi[2]; z++ {
						for y := box.Lo[1]; y < box.Hi[1]; y++ {
							for x := box.Lo[0]; x < box.Hi[0]; x++ {
								if q := (domain.Vec{x, y, z}); values[i] != want(q) {
									t.Fatalf("point %v is %v, want %v", q, values[i], want(q))
								}
								i++
							}
						}
					}
				}
			}
			box := u.Cut.Grid.Box()
			if c.constant[0] {
				refuses(t, "reduction", errorOf(halo.NewReduction(u, set.Compiler, halo.Max)), "must not be constant along x")
			}
			refuses(t, "write", halo.Write(u, box, make([]float64, box.Points())), "must be set by Fill")
			if plan := must(halo.NewPlan(p, links, p2p.Auto, u.Spec))(t); len(plan.Messages) > 0 {
				t.Errorf("it is exchanged by %v", plan.Messages)
			}
		})
	}
	for says, s := range map[string]halo.Spec{
		"must not be staggered": {Constant: []bool{false, true, false}, Stagger: []bool{true, false, false}},
		"constant":              {Constant: []bool{false, true}},
	} {
		s.Name, s.Element = "k", halo.Float64
		refuses(t, says, errorOf(halo.NewField(p, s)), says)
	}
	s := halo.Spec{Name: "k", Element: halo.Float64, Constant: []bool{false, true, true}}
	refuses(t, "wrap", errorOf(halo.WrapField(p, s, make([]kernels.Array, 4)...)), "must not be constant")
}
