package boundary_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Boundary ghosts are set after the exchange: at corners they repeat exchanged ghosts. The plane has fixed
// values on the left and zero flux at its other sides.
func ExampleNew() {
	ctx := context.Background()
	session, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	spec := halo.Spec{Name: "f", Element: halo.Int64, Width: domain.UniformRadius(2, 1)}
	place, err1 := session.Cut(ctx, halo.Cutting{Size: []int{4, 4}, Fields: []halo.Spec{spec}})
	f, err2 := halo.NewField(place, spec)
	exchange, err3 := session.NewExchanger(ctx, f)
	faces := boundary.All(boundary.Condition{Kind: boundary.Neumann})
	faces[0] = boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{-5}}
	ghosts, err4 := boundary.New(session.Compiler, f, faces)
	at, err5 := place.NewStreams()
	err6 := halo.FillPoints(f, func(p domain.Vec) int64 { return int64(10*p[1] + p[0]) })
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(exchange.Exchange(at), ghosts.Set(at), at.Sync(time.Minute)); err != nil {
		log.Fatal(err)
	}
	for _, part := range f.Parts { // from the top down, including ghosts
		values, box := kernels.ValuesOf[int64](part), part.Layout.Owned.Grow(part.Layout.Width)
		for y := box.Hi[1] - 1; y >= box.Lo[1]; y-- {
			fmt.Println(values.Data[values.Index(box.Lo[0], y, 0):][:box.Size()[0]])
		}
		fmt.Println()
	}
	// Output:
	// [-5 20 21 22 23 23]
	// [-5 10 11 12 13 13]
	// [-5 0 1 2 3 3]
	// [-5 0 1 2 3 3]
	//
	// [-5 30 31 32 33 33]
	// [-5 30 31 32 33 33]
	// [-5 20 21 22 23 23]
	// [-5 10 11 12 13 13]
}

// A face with a user kernel: the flux at x- grows with y, and the other faces have zero flux. The kernel sets
// its ghosts only by their place, so the order at edges, where other faces and neighbors have ghosts too,
// does not matter.
func ExampleCondition_kernel() {
	ctx := context.Background()
	session, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	spec := halo.Spec{Name: "f", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}
	place, err1 := session.Cut(ctx, halo.Cutting{Size: []int{3, 4}, Parts: []int{1, 2}, Fields: []halo.Spec{spec}})
	f, err2 := halo.NewField(place, spec)
	faces := boundary.All(boundary.Condition{Kind: boundary.Neumann})
	faces[0] = boundary.Condition{Kind: boundary.Custom, Kernel: func(at boundary.Slab) (*streams.Kernel, error) {
		v := kernels.ValuesOf[float64](at.Array)
		return kernels.Points(at.Device, kernels.PointSpec[struct{ Ghosts kernels.View }]{
			Name: "inflow", Boxes: []domain.Box{at.Ghosts}, Arrays: []kernels.Array{at.Array},
			Argument: struct{ Ghosts kernels.View }{at.Array.View()}, // for Function, the kernel for GPUs, omitted here
			Row: func(x0, x1, y, z int) {
				for x := x0; x < x1; x++ {
					v.Data[v.Index(x, y, z)] = 10 * float64(y)
				}
			},
		})
	}}
	ghosts, err3 := boundary.New(session.Compiler, f, faces)
	at, err4 := place.NewStreams()
	err5 := halo.FillPoints(f, func(p domain.Vec) float64 { return float64(p[0]) })
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(ghosts.Set(at), at.Sync(time.Minute)); err != nil {
		log.Fatal(err)
	}
	for _, part := range f.Parts { // owned points, with the ghosts at both ends of x
		values := kernels.ValuesOf[float64](part)
		for y := part.Layout.Owned.Lo[1]; y < part.Layout.Owned.Hi[1]; y++ {
			fmt.Println(values.Data[values.Index(-1, y, 0):][:5])
		}
	}
	// Output:
	// [0 0 1 2 2]
	// [10 0 1 2 2]
	// [20 0 1 2 2]
	// [30 0 1 2 2]
}
