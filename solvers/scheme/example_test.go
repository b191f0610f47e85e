package scheme_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// must returns the value, or ends the program on an error, as check does.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// smoothing is the kernel on a GPU; on a CPU device KernelSpec.Row runs instead.
var smoothing = kernels.Source{Name: "smooth.cu", Text: `
struct Argument {
	View<double> to;
	View<const double> from;
};
extern "C" __global__ void smooth(const __grid_constant__ Points<Argument> p) {
	p.each([&](i64 x, i64 y, i64 z) { p.arg.to(x, y, z) = (p.arg.from(x - 1, y, z) + p.arg.from(x + 1, y, z)) / 2; });
}`}

// The source compiles for GPUs, see testdevices.
func TestSmoothingCompiles(t *testing.T) { testdevices.Compile(t, smoothing) }

// smooth prepares the launch of a region: its boxes, in the fields of the region, which alternate from step
// to step.
func smooth(c *kernels.Compiler) func(r scheme.Region) (scheme.Launch, error) {
	return func(r scheme.Region) (scheme.Launch, error) {
		source, target := r.Reads[0].Parts[r.Rank], r.Writes[0].Parts[r.Rank]
		functions, err := c.Functions(r.Device, smoothing, "smooth")
		if err != nil {
			return nil, err
		}
		from, to := kernels.ValuesOf[float64](source), kernels.ValuesOf[float64](target)
		k, err := kernels.Points(r.Device, kernels.PointSpec[struct{ To, From kernels.View }]{
			Name: r.Name, Work: streams.Sweep, Boxes: r.Boxes, Arrays: []kernels.Array{source, target},
			Row: func(x0, x1, y, z int) { // for CPU devices
				a, b := from.Index(x0, y, z), to.Index(x0, y, z)
				for i := range x1 - x0 {
					to.Data[b+i] = (from.Data[a+i-1] + from.Data[a+i+1]) / 2
				}
			},
			Function: functions[0], // for GPUs
			Argument: struct{ To, From kernels.View }{target.View(), source.View()},
		})
		if err != nil {
			return nil, err
		}
		return scheme.Kernel(k), nil
	}
}

// A stage with user kernels: halox exchanges the variables it reads and orders the sweeps.
func ExampleStage() {
	ctx := context.Background()
	session := must(halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 2}))
	defer session.Close()
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}
	place := must(session.Cut(ctx, halo.Cutting{Size: []int{8, 4}, Fields: []halo.Spec{spec}}))
	u := must(scheme.NewVariable(place, spec, 2))
	u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{0}})
	step := &scheme.Step{Name: "smooth", Stages: []scheme.Stage{{
		Reads:   []scheme.Access{u.At(0, stencil.Offsets(domain.Vec{-1}, domain.Vec{1}))},
		Writes:  []scheme.Access{u.At(1, nil)},
		Kernels: smooth(session.Compiler),
	}}}
	check(halo.FillPoints(u.Level(0), func(p domain.Vec) float64 { return 64 }))
	run := must(scheme.New(ctx, session, step, scheme.Options{}))
	defer run.Close()
	must(run.Steps(ctx, 3))
	fmt.Println(must(halo.ReadAll[float64](u.Level(run.Done())))[:8])
	// Output: [24 48 56 64 64 56 48 24]
}

// Runs continue from the newest level of the variables, whichever runner ran the steps before. SetNewest
// restarts from values filled into Level(0).
func ExampleVariable_SetNewest() {
	ctx := context.Background()
	session := must(halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 1}))
	defer session.Close()
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}
	place := must(session.Cut(ctx, halo.Cutting{Size: []int{8, 4}, Fields: []halo.Spec{spec}}))
	u := must(scheme.NewVariable(place, spec, 2))
	step := &scheme.Step{Name: "smooth", Stages: []scheme.Stage{{
		Reads: []scheme.Access{u.At(0, stencil.Offsets(domain.Vec{-1}, domain.Vec{1}))}, Writes: []scheme.Access{u.At(1, nil)},
		Kernels: smooth(session.Compiler),
	}}}
	for range 2 { // two runners, one after the other
		run := must(scheme.New(ctx, session, step, scheme.Options{}))
		must(run.Steps(ctx, 3))
		check(run.Close())
		fmt.Println("the newest level is", u.Newest())
	}
	check(halo.FillPoints(u.Level(0), func(domain.Vec) float64 { return 1 }))
	check(u.SetNewest(0))
	fmt.Println("the newest level is", u.Newest())
	// Output:
	// the newest level is 3
	// the newest level is 6
	// the newest level is 0
}

// Three steps between two exchanges: ghosts are three times as wide, and the first two steps sweep some of
// them too.
func ExampleStep_group() {
	ctx := context.Background()
	session := must(halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 2}))
	defer session.Close()
	place := must(session.Cut(ctx, halo.Cutting{Size: []int{8, 4}, Parts: []int{2, 1}}))
	reach := domain.Radius{Minus: domain.Vec{1}, Plus: domain.Vec{1}} // radius of the only stage, along x
	wide := must(halo.NewWideHalo(place.Decomposition, reach, 3))
	u := must(scheme.NewVariable(place, wide.Spec(halo.Spec{Name: "u", Element: halo.Float64}), 2))
	u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{0}})
	step := &scheme.Step{Name: "smooth", Group: wide.Steps, Stages: []scheme.Stage{{
		Reads:   []scheme.Access{u.At(0, stencil.Offsets(domain.Vec{-1}, domain.Vec{1}))},
		Writes:  []scheme.Access{u.At(1, nil)},
		Kernels: smooth(session.Compiler),
	}}}
	check(halo.FillPoints(u.Level(0), func(p domain.Vec) float64 { return 64 }))
	run := must(scheme.New(ctx, session, step, scheme.Options{}))
	defer run.Close()
	result := must(run.Steps(ctx, 6))
	fmt.Println(must(halo.ReadAll[float64](u.Level(run.Done())))[:8])
	fmt.Println(result.Bytes, "bytes in", result.Steps, "steps")
	// Output:
	// [20 35 49 54 54 49 35 20]
	// 384 bytes in 6 steps
}
