package solvers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Every scheme runs walls of every kind with the bits of the reference, with an exchange after each step and after two,
// or says by name that it does not.
func TestSchemesBetweenWalls(t *testing.T) {
	const steady, grouped = "runs steps without the host", "exchanges after each step"
	schemes := []struct {
		name             scheme.Scheme
		moving, inGroups string // what it says of values that change with time, and of several steps between exchanges
	}{
		{scheme.Baseline, "", ""}, {scheme.TwoStream, "", ""}, {scheme.Assisted, "", ""}, {scheme.Graph, steady, ""},
		{scheme.Blocked, "", ""}, {scheme.Fused, "", ""}, {scheme.Resident, steady, ""}, {scheme.Ranks, steady, grouped},
	}
	if len(schemes) != len(scheme.All()) {
		t.Fatalf("%d schemes of %v", len(schemes), scheme.All())
	}
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		for _, walls := range []string{"ff", "rr", "gg", "hh", "oo", "FF", "RR", "GG", "HH", "fn", "rd", "gp", "hp", "dh", "tH", "kk", "Kd", "FR box", "rd box", "kK box"} {
			for _, s := range schemes {
				for group := 1; group <= 2; group++ {
					for _, parts := range []domain.Vec{{1, 1, 1}, {1, 3, 1}} {
						h := how{s.name, scheme.LeftRight, pathOf(s.name), parts}
						if len(s.name.Needs().Orders) == 0 {
							h.order = ""
						}
						t.Run(fmt.Sprintf("walls=%s/group=%d/%v", walls, group, h), func(t *testing.T) {
							mix := walls[:2] + walls[:2]
							if walls[1] == 'p' {
								mix = walls[:1] + walls[:1] + "pp"
							}
							p := inGroupsOf(problem(t, []int{8, 12}, domain.Float64, mix), group)
							if walls[2:] != "" {
								of(t, p, stencil.Kind{Points: 9, Shape: stencil.BoxShape})
							}
							says := map[bool]string{true: s.inGroups}[group > 1]
							if says == "" && strings.ContainsAny(walls, "FRGHKt") {
								says = s.moving
							}
							if group > 1 && s.name == scheme.Resident && walls[0] != 'o' && set.Devices[0].Backend == streams.CUDA {
								says = cmp.Or(says, map[bool]string{true: "must be a star", false: "ghosts behind faces: must be a copy"}[walls[2:] != ""])
							}
							if says == "" {
								solved(t, set, p, h, scheme.Options{Steps: 5, CheckEvery: 2})
								return
							}
							_, err := prepare(t, set, p, h).Run(t.Context(), h.options(scheme.Options{Steps: 1}))
							wants(t, err, scheme.ErrUnsuited, says)
						})
					}
				}
			}
		}
	})
}

// Between walls of each kind with values that change along them and with time, heat comes closer to the solution with the
// square of the spacing.
func TestOrderOfEachWall(t *testing.T) {
	testdevices.Once(t)
	set := testdevices.Host(t, 1)
	const diffusivity, end = 0.7, 0.02
	for dims, sizes := range map[int][]int{2: {12, 24, 48}, 3: {8, 16}} {
		for _, ends := range []string{"dd", "hh", "gg", "ff", "rr", "hr", "gd"} {
			t.Run(fmt.Sprintf("dims=%d/%s", dims, ends), func(t *testing.T) {
				waves, squares, mix := make([]string, dims), 0.0, ""
				for a := range dims {
					k := 1.3 + 0.4*float64(a)
					waves[a], squares, mix = fmt.Sprintf("sin(%v*%c+0.4)", k, "xyz"[a]), squares+k*k, mix+ends
				}
				decay := fmt.Sprintf("exp(-%v*t)", diffusivity*squares)
				exact := decay + "*" + strings.Join(waves, "*")
				var errors, spacings []float64
				for _, n := range sizes {
					p := unitBox(t, mix, slices.Repeat([]int{n}, dims), exact, exact)
					p.Diffusivity = diffusivity
					for i, face := range domain.Faces(dims) {
						across := slices.Clone(waves)
						a, w := face.Axis(), &p.Boundary[i]
						across[a] = fmt.Sprintf("(%v*cos(%v*%c+0.4))", (1.3+0.4*float64(a))*float64(face[a]), 1.3+0.4*float64(a), "xyz"[a])
						slope := decay + "*" + strings.Join(across, "*")
						switch ends[i%2] {
						case 'g':
							w.Value = parse(t, slope)
						case 'f':
							w.Value = parse(t, fmt.Sprintf("%v*%s", diffusivity, slope))
						case 'r':
							h := "(2.5 + sin(3*x - 2*y + 40*t))"
							w.Transfer, w.Value = parse(t, h), parse(t, fmt.Sprintf("%s + %v/%s*%s", exact, diffusivity, h, slope))
						}
					}
					spacings = append(spacings, p.Spacing[0])
					steps := int64(math.Ceil(end / (0.15 * p.Spacing[0] * p.Spacing[0])))
					p.TimeStep = end / float64(steps)
					p.Stencil = must(starOf(stencil.Heat(p.Spacing, diffusivity, p.TimeStep)))(t)
					s, _ := solve(t, set, p, how{scheme.TwoStream, scheme.LeftRight, p2p.Auto, domain.Vec{1, 1, 1}}, scheme.Options{Steps: steps})
					errors = append(errors, must(s.Deviation(t.Context(), 0, parse(t, exact)))(t).L2)
				}
				for i := 1; i < len(errors); i++ {
					if order := math.Log(errors[i-1]/errors[i]) / math.Log(spacings[i-1]/spacings[i]); math.Abs(order-2) > 0.15 {
						t.Errorf("errors %v: order %v", errors, order)
					}
				}
			})
		}
	}
}
