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

// Boundaries come after the exchange: at corners they repeat what it brought. The plane has
// numbers to the left and nothing flows through its other sides.
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
	if err := errors.Join(exchange.Exchange(at), ghosts.Set(at), at.Sync(time.Second)); err != nil {
		log.Fatal(err)
	}
	for _, part := range f.Parts { // from the top down, ghosts included
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
