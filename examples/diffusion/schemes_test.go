package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// points are the three stages as point functions, for schemes of halox: the same arithmetic without device ranks.
const points = `
__device__ __forceinline__ double limit(double ahead, double here, double value_ahead, double value) {
	const double flux = ahead - here;
	return flux * (value_ahead - value) > 0 ? 0 : flux;
}
template <typename P> __device__ __forceinline__ void laplace(P &p) {
	p.set(lap, 4 * p.at(u) - (p.at(u, -1, 0, 0) + p.at(u, 1, 0, 0) + p.at(u, 0, -1, 0) + p.at(u, 0, 1, 0)));
}
template <typename P> __device__ __forceinline__ void fluxes(P &p) {
	p.set(flx, limit(p.at(lap, 1, 0, 0), p.at(lap), p.at(u, 1, 0, 0), p.at(u)));
	p.set(fly, limit(p.at(lap, 0, 1, 0), p.at(lap), p.at(u, 0, 1, 0), p.at(u)));
}
template <typename P> __device__ __forceinline__ void diffuse(P &p) {
	p.set(next, p.at(u) - 0.025 * (p.at(flx) - p.at(flx, -1, 0, 0) + p.at(fly) - p.at(fly, 0, -1, 0)));
}
`

// stage returns a point function; row computes the i-th point of a row, whose arrays at reads.
func stage(name string, row func(at func(name string, dx, dy int) []float64, i int)) *sweep.Point {
	return &sweep.Point{Name: name, Dims: 3, CUDA: points, File: "points.cu", Go: func(r *sweep.Row) {
		for i := range r.N {
			row(func(name string, dx, dy int) []float64 { return sweep.At[float64](r, name, dx, dy, 0) }, i)
		}
	}}
}

// runScheme runs steps under a scheme of halox, and returns the result and the time of the loop.
func runScheme(t testing.TB, s *halo.Session, first grid, steps int, o scheme.Options) ([]float64, time.Duration, error) {
	west, east, south, north, here := domain.Vec{-1}, domain.Vec{1}, domain.Vec{0, -1}, domain.Vec{0, 1}, domain.Vec{}
	// Ghosts are on the sides that the next stage reads.
	specs := []halo.Spec{
		{Name: "u", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{1, 1}, Plus: domain.Vec{1, 1}}},
		{Name: "lap", Element: halo.Float64, Width: domain.Radius{Plus: domain.Vec{1, 1}}},
		{Name: "flx", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{1}}},
		{Name: "fly", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{0, 1}}},
	}
	n := len(s.Devices)
	size := []int{first.nx, first.ny, first.nz}
	place, err := s.Cut(t.Context(), halo.Cutting{
		Size: size, Periodic: [3]bool{true, true}, Fields: specs, Parts: domain.Vec{1, n, 1}, Devices: n,
	})
	if err != nil {
		t.Fatal(err)
	}
	var v [4]*scheme.Variable
	for i, spec := range specs {
		if v[i], err = scheme.NewVariable(place, spec, 1+max(0, 1-i)); err != nil {
			t.Fatal(err)
		}
		defer v[i].Close()
	}
	u, lap, flx, fly := v[0], v[1], v[2], v[3]
	ahead := stencil.Offsets(here, east, north)
	x, err := scheme.New(t.Context(), s, &scheme.Step{Name: "diffusion", Stages: []scheme.Stage{
		{
			Name: "laplace", Point: stage("laplace", func(at func(string, int, int) []float64, i int) {
				sum := at("u", -1, 0)[i] + at("u", 1, 0)[i] + at("u", 0, -1)[i] + at("u", 0, 1)[i]
				at("lap", 0, 0)[i] = float64(4*at("u", 0, 0)[i]) - sum
			}),
			Reads:  []scheme.Access{u.At(0, stencil.Offsets(here, west, east, south, north))},
			Writes: []scheme.Access{lap.At(1, nil)},
		},
		{
			Name: "fluxes", Point: stage("fluxes", func(at func(string, int, int) []float64, i int) {
				value, l := at("u", 0, 0)[i], at("lap", 0, 0)[i]
				at("flx", 0, 0)[i] = limited(at("lap", 1, 0)[i], l, at("u", 1, 0)[i], value)
				at("fly", 0, 0)[i] = limited(at("lap", 0, 1)[i], l, at("u", 0, 1)[i], value)
			}),
			Reads:  []scheme.Access{u.At(0, ahead), lap.At(1, ahead)},
			Writes: []scheme.Access{flx.At(1, nil), fly.At(1, nil)},
		},
		{
			Name: "diffuse", Point: stage("diffuse", func(at func(string, int, int) []float64, i int) {
				gain := at("flx", 0, 0)[i] - at("flx", -1, 0)[i] + at("fly", 0, 0)[i] - at("fly", 0, -1)[i]
				at("next", 0, 0)[i] = at("u", 0, 0)[i] - float64(0.025*gain)
			}),
			Reads: []scheme.Access{
				u.At(0, nil), flx.At(1, stencil.Offsets(here, west)), fly.At(1, stencil.Offsets(here, south)),
			},
			Writes: []scheme.Access{u.At(1, nil).Named("next")},
		},
	}}, o)
	if err != nil {
		return nil, 0, err
	}
	box := domain.Box{Hi: domain.Vec{first.nx, first.ny, first.nz}}
	err = halo.FillPoints(u.Level(0), func(p domain.Vec) float64 {
		if !box.Contains(p) {
			return math.NaN() // a ghost
		}
		return first.at(p[0], p[1], p[2])
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Steps(t.Context(), int64(steps))
	if err != nil {
		return nil, 0, err
	}
	values, err := halo.ReadAll[float64](u.Level(x.Done()))
	return values, res.Loop, err
}

// Schemes of halox give the same bits as device ranks.
func TestSchemes(t *testing.T) {
	exampletest.EachSession(t, 3, func(t *testing.T, s *halo.Session) {
		names := scheme.All()
		if s.Devices[0].Backend != streams.Host {
			names = []scheme.Scheme{scheme.TwoStream, scheme.Graph, scheme.Fused}
		}
		first := start(13, 6*len(s.Devices), 3)
		want := reference(first, 3)
		for _, name := range names {
			values, _, err := runScheme(t, s, first, 3, scheme.Options{Scheme: name, Steps: 3})
			if name == scheme.Ranks || name == scheme.Blocked { // which run steps of one stage
				if !errors.Is(err, scheme.ErrUnsuited) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if err != nil || !slices.Equal(values, want.values) {
				t.Errorf("%s: %v, or the bits differ from the reference", name, err)
			}
		}
	})
}

// BenchmarkStep compares device ranks with schemes fused and graph at the size of the thesis, on 1, 2 and 4 devices: the
// table of applications in docs/ranks.md.
func BenchmarkStep(b *testing.B) {
	const steps = 200
	for _, devices := range []int{1, 2, 4} {
		s, err := halo.Open(b.Context(), halo.Devices{Count: devices})
		if err != nil {
			b.Log(err) // fewer devices
			return
		}
		defer s.Close()
		n := sizes["thesis"]
		report := func(b *testing.B, run func() (time.Duration, error)) {
			total := time.Duration(0)
			for range b.N {
				took, err := run()
				if err != nil {
					b.Fatal(err)
				}
				total += took
			}
			b.ReportMetric(total.Seconds()*1e6/float64(steps*b.N), "us/step")
		}
		b.Run(fmt.Sprintf("devices=%d/by=ranks", devices), func(b *testing.B) {
			_, o, _ := newExample().Parse(nil, b.Output())
			x, err := newDiffusion(s, o, n)
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			report(b, func() (time.Duration, error) {
				if err := x.Reset(); err != nil {
					return 0, err
				}
				return x.Run(b.Context(), steps)
			})
		})
		for _, name := range []scheme.Scheme{scheme.Fused, scheme.Graph} {
			b.Run(fmt.Sprintf("devices=%d/by=%s", devices, name), func(b *testing.B) {
				first := start(n.nx, n.ny*devices, n.nz)
				report(b, func() (time.Duration, error) {
					_, took, err := runScheme(b, s, first, steps, scheme.Options{Scheme: name, Steps: steps})
					return took, err
				})
			})
		}
	}
}
