package halo_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// openPlane returns two host devices and a plane of 4 x 4 points on them, its lower
// half on the first, its upper on the second.
func openPlane() (*halo.Session, *halo.Placement) {
	session, err := halo.Open(context.Background(), halo.Devices{Backend: streams.Host, Count: 2})
	if err != nil {
		log.Fatal(err)
	}
	place, err := session.Cut(context.Background(), halo.Cutting{Size: []int{4, 4}})
	if err != nil {
		log.Fatal(err)
	}
	return session, place
}

// intField returns a field with one layer of ghosts.
func intField(place *halo.Placement, name string) *halo.Field {
	f, err := halo.NewField(place, halo.Spec{Name: name, Element: halo.Int64, Width: domain.UniformRadius(2, 1)})
	if err != nil {
		log.Fatal(err)
	}
	return f
}

// After an exchange, the ghosts of each subdomain are what its neighbours own.
func Example() {
	session, place := openPlane()
	defer session.Close()
	f := intField(place, "f")
	owned := func(p domain.Vec) int64 { return int64(10*p[1] + p[0]) }
	if err := halo.FillPoints(f, owned); err != nil {
		log.Fatal(err)
	}
	exchange, err1 := session.NewExchanger(context.Background(), f)
	at, err2 := place.NewStreams()
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	values := kernels.ValuesOf[int64](f.Parts[1]) // the upper half, as the CPU sees it
	ghosts := values.Data[values.Index(0, 1, 0):][:4]
	clear(ghosts)
	fmt.Println(ghosts)
	if err := errors.Join(exchange.Exchange(at), at.Sync(time.Second)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ghosts)
	// Output:
	// [0 0 0 0]
	// [10 11 12 13]
}

// Two fields travel in one message, which is planned before anything is allocated.
func ExampleNewPlan() {
	session, place := openPlane()
	defer session.Close()
	width := domain.UniformRadius(2, 1)
	plan, err := halo.NewPlan(place, session.Links, p2p.Staged,
		halo.Spec{Name: "density", Element: halo.Float64, Width: width},
		halo.Spec{Name: "speed", Element: halo.Float32, Components: 2, Width: width})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range plan.Messages {
		fmt.Printf("%d to %d in %v: %d parts, %d bytes, %s\n", m.From, m.To, m.Dir, len(m.Parts), m.Bytes, m.Path)
	}
	// Output:
	// 0 to 1 in y+: 2 parts, 64 bytes, staged
	// 1 to 0 in y-: 2 parts, 64 bytes, staged
}

// An error says what to change.
func ExampleNewField() {
	session, place := openPlane()
	defer session.Close()
	_, err := halo.NewField(place, halo.Spec{Name: "f", Element: halo.Float64, Width: domain.UniformRadius(2, 3)})
	fmt.Println(err)
	// Output:
	// halo: field "f": domain: subdomain 0 owns 2 layers along y, its neighbour in y+ needs 3: use 1 part or a larger grid
}

// A staggered field has one point more between walls. Read takes any box of it.
func ExampleRead() {
	session, place := openPlane()
	defer session.Close()
	vy, err := halo.NewField(place, halo.Spec{Name: "vy", Element: halo.Float32, Stagger: [3]bool{1: true}})
	if err != nil {
		log.Fatal(err)
	}
	if err := halo.FillPoints(vy, func(p domain.Vec) float32 { return float32(p[1]) }); err != nil {
		log.Fatal(err)
	}
	column := make([]float32, 5)
	err = halo.Read(column, vy, domain.Box{Lo: domain.Vec{2, 0, 0}, Hi: domain.Vec{3, 5, 1}})
	fmt.Println(column, err)
	// Output: [0 1 2 3 4] <nil>
}

// Fill gives whole rows, to several goroutines at once.
func ExampleFill() {
	session, place := openPlane()
	defer session.Close()
	f := intField(place, "rank")
	err := halo.Fill(f, func(rank int) halo.Row[int64] {
		return func(values []int64, at domain.Vec) {
			for i := range values {
				values[i] = int64(rank)
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	values, err := halo.ReadAll[int64](f)
	fmt.Println(values, err)
	// Output: [0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1] <nil>
}

// Work that needs no ghosts can be queued between Start and Wait, and runs while
// the messages travel.
func ExampleExchanger_Start() {
	session, place := openPlane()
	defer session.Close()
	f := intField(place, "f")
	exchange, err1 := session.NewExchanger(context.Background(), f)
	at, err2 := place.NewStreams()
	boundary, interior, err3 := place.Kernels(domain.UniformRadius(2, 1), func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
		return kernels.Points(place.Devices[rank], kernels.PointSpec[struct{ F kernels.View }]{
			Name: "count", Arrays: []kernels.Array{f.Parts[rank]}, Boxes: boxes,
			Row: func(x0, x1, y, z int) {
				values := kernels.ValuesOf[int64](f.Parts[rank])
				for x := x0; x < x1; x++ {
					values.Data[values.Index(x, y, z)]++
				}
			},
		})
	})
	err4 := halo.FillPoints(f, func(domain.Vec) int64 { return 0 })
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		log.Fatal(err)
	}
	for range 3 {
		err := errors.Join(at.Launch(boundary), exchange.Start(at), at.Launch(interior), exchange.Wait(at))
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := at.Sync(time.Second); err != nil {
		log.Fatal(err)
	}
	values, err := halo.ReadAll[int64](f)
	fmt.Println(values, err)
	// Output: [3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3] <nil>
}
