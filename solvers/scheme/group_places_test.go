package scheme

import (
	"errors"
	"fmt"
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

// floor is a point function that asks where a point lies along y alone.
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

// Steps in groups may ask where a point lies along an axis that is not periodic, also where another one is. Behind a
// face without a kind they read what the caller stored, beyond the ends of the periodic axis too.
func TestGroupsBesideAPeriodicAxis(t *testing.T) {
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
