package scheme

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Steps of any stages, with several steps between two exchanges, are bitwise identical to plain loops on one
// array, for every scheme that supports groups, path and decomposition.
func TestGroupsAreBitwiseIdentical(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	t.Run("stages=kernels", func(t *testing.T) { eachRandomGroup(t, testdevices.Host(t, 4), false) })
	t.Run("stages=points", func(t *testing.T) {
		testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) { eachRandomGroup(t, set, true) })
	})
}

// The same holds for steps whose last stage alone writes the sent variables, if one of the devices is late in
// every stage: a store of the fast one must not come before the slow one has swept the ghosts.
func TestGroupsOfLateDevices(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs two devices")
		}
		seeds := []int{1} // three stages in groups of three, in which stores came too early
		for _, seed := range append(seeds, testdevices.Some(2, []int{0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})...) {
			s := newRelayStep(t, rand.New(rand.NewPCG(uint64(seed), 5)))
			late, err := set.Disturbed(func(d *streams.Device) []string {
				if d == set.Devices[seed%2] {
					return []string{"LATE=20000"} // ns
				}
				return nil
			})
			succeeds(t, err)
			c := cases{
				steps: 9, cuts: []domain.Vec{{2, 1, 1}}, paths: []p2p.Path{p2p.Direct}, points: true,
				options: []Options{{Scheme: TwoStream}, {Scheme: Fused}, {Scheme: Resident}},
			}
			c.try(t, late, s, seed)
		}
	})
}

// newRelayStep returns a step in which some stages read around points, and each passes its variable to the
// next one; the last writes the first variable, which alone is exchanged.
func newRelayStep(t *testing.T, r *rand.Rand) *randomStep {
	s := newRandomStep(t, r)
	s.group, s.variables, s.stages = 2+r.IntN(2), nil, nil
	s.grid.Size[0] += 8
	stages := 1 + r.IntN(4)
	for i := range stages {
		v := s.newVariable(r)
		v.levels, v.width = 1, domain.UniformRadius(s.grid.Dims, 1)
		if i == 0 {
			v.levels = 1 + r.IntN(2)
		}
		s.variables = append(s.variables, v)
	}
	around := r.IntN(stages)
	for i := range stages {
		read := randomAccess{variable: i, level: 1}
		if i == 0 {
			read.level = 0
		}
		if i == around || r.IntN(4) == 0 {
			for range 1 + r.IntN(3) {
				read.around = append(read.around, s.offset(r, s.variables[i].width))
			}
			read.around = append(read.around, domain.Vec{-1}, domain.Vec{1})
		}
		if stages == 1 && s.variables[0].levels == 1 {
			s.variables[0].levels = 2 // it reads around points the variable that it writes
		}
		s.stages = append(s.stages, randomStage{
			reads: []randomAccess{read}, writes: []randomAccess{{variable: (i + 1) % stages, level: 1}},
		})
	}
	return s
}

func eachRandomGroup(t *testing.T, set *testdevices.Set, points bool) {
	c := cases{
		steps: 7, cuts: cuts, paths: []p2p.Path{p2p.Staged, p2p.Direct, p2p.Peer}, points: points, made: map[Scheme]int{},
		options: []Options{{Scheme: Baseline}, {Scheme: TwoStream}, {Scheme: Assisted}, {Scheme: Fused}, {Scheme: Resident}},
	}
	seeds := testdevices.Again(5, testdevices.Some(14, testdevices.Numbers(40)))
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		s := newRandomStep(t, r)
		s.group = 2 + r.IntN(3)
		for a := range s.grid.Dims {
			s.grid.Size[a] += r.IntN(10)
		}
		c.try(t, set, s, seed)
	}
	least := len(seeds) / 4 // one device has one decomposition, and schemes that store have one path
	for name, n := range c.made {
		if n < least {
			t.Errorf("%d cases ran with %s", n, name)
		}
	}
}

// stores reports whether the kernels of a scheme store into ghosts of neighbors.
func stores(name Scheme) bool { return name == Fused || name == Resident }

// floor is a point function that uses the position of a point along y only.
var floor = sweep.Point{
	Name: "floor_of", Dims: 2,
	CUDA: `
template <typename P> __device__ __forceinline__ void floor_of(P &p) {
	const double below = p.j() == 0 ? -p.at(u) : p.at(u, 0, -1, 0);
	p.set(next, 0.25 * (p.at(u, -1, 0, 0) + p.at(u, 1, 0, 0) + below + p.at(u, 0, 1, 0)) + 0.125 * p.j());
}`,
	Go: func(r *sweep.Row) {
		u := func(dx, dy int) []float64 { return sweep.At[float64](r, "u", dx, dy, 0) }
		now, west, east, south, north, next := u(0, 0), u(-1, 0), u(1, 0), u(0, -1), u(0, 1), sweep.At[float64](r, "next", 0, 0, 0)
		for i := range next {
			below := south[i]
			if r.J == 0 {
				below = -now[i]
			}
			next[i] = float64(0.25*(west[i]+east[i]+below+north[i])) + float64(0.125*float64(r.J))
		}
	},
}

// Steps in groups may use the position of a point along an axis that is not periodic, even if another axis
// is. Outside of Given faces they read the values stored by the caller, also beyond the ends of the periodic
// axis.
func TestGroupsWithPeriodicAxis(t *testing.T) {
	const nx, ny, steps = 13, 14, 8
	start := func(p domain.Vec) float64 { return float64((p[0]*7+p[1]*5)%11) / 8 }
	want := must(floorRun(t, testdevices.Host(t, 1), []int{nx, ny}, domain.Vec{1, 1, 1}, TwoStream, 1, steps, start))(t)
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, parts := range []domain.Vec{{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}} {
			for _, name := range []Scheme{TwoStream, Assisted, Blocked, Fused, Resident} {
				if int(parts.Product()) > len(set.Devices) {
					continue
				}
				t.Run(fmt.Sprintf("scheme=%s/parts=%dx%d", name, parts[0], parts[1]), func(t *testing.T) {
					got, err := floorRun(t, set, []int{nx, ny}, parts, name, 3, steps, start)
					if errors.Is(err, ErrUnsuited) && set.Devices[0].Backend != streams.Host {
						t.Skip("SKIPPED: ", err)
					}
					succeeds(t, err)
					for i, v := range got {
						if v != want[i] {
							t.Fatalf("point %d %d: got %v, want %v", i%nx, i/nx, v, want[i])
						}
					}
				})
			}
		}
	})
}

// floorRun runs the steps of floor in groups, on a grid that is periodic along x.
func floorRun(
	t *testing.T, set *testdevices.Set, size []int, parts domain.Vec, name Scheme, group int, steps int64, start func(p domain.Vec) float64,
) ([]float64, error) {
	place := placed(t, set.Devices, size, [3]bool{true}, parts)
	wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(2, 1), group))(t)
	u := newVariable(t, place, wide.Spec(halo.Spec{Name: "u", Element: halo.Float64}), 2)
	u.Boundary = boundary.Faces{2: {Kind: boundary.Neumann}}
	step := &Step{Name: "floor", Group: wide.Steps, Stages: []Stage{{
		Reads: []Access{u.At(0, stencil.Star(2, 1))}, Writes: []Access{u.At(1, nil).Named("next")}, Point: &floor,
	}}}
	succeeds(t, errors.Join(halo.Fill(u.Level(0), func(int) halo.Row[float64] {
		return func(values []float64, at domain.Vec) {
			for i := range values {
				values[i] = start(domain.Vec{(at[0] + i + size[0]) % size[0], at[1]})
			}
		}
	}), u.SetAll()))
	x := runnerBy(t, set, step, p2p.Direct)
	if _, err := x.Run(t.Context(), Options{Scheme: name, Steps: steps}); err != nil {
		return nil, err
	}
	return halo.ReadAll[float64](u.Level(x.Done()))
}
