package halo_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// exampleField is a field of 8 x 6 points with one layer of ghosts, cut in two
// along y over two host devices. Every point holds its x index.
func exampleField() (f *halo.Field, compiler *kernels.Compiler, closeAll func() error) {
	devices, err := streams.HostPlatform(2).Open()
	if err != nil {
		log.Fatal(err)
	}
	grid, err := domain.NewGrid([]int{8, 6}, [3]bool{})
	if err != nil {
		log.Fatal(err)
	}
	cut, err := domain.Decompose(grid, domain.Vec{1, 2, 1})
	if err != nil {
		log.Fatal(err)
	}
	place, err := halo.Place(cut, devices)
	if err != nil {
		log.Fatal(err)
	}
	if f, err = halo.NewField(place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}); err != nil {
		log.Fatal(err)
	}
	err = halo.Fill(f, func(int) halo.Row[float64] {
		return func(values []float64, at domain.Vec) {
			for i := range values {
				values[i] = float64(at[0] + i)
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	return f, kernels.NewCompiler(kernels.Options{}), func() error { return streams.CloseAll(devices) }
}

func ExampleReduce() {
	f, compiler, closeAll := exampleField()
	defer closeAll()
	for _, op := range []halo.Op{halo.Sum, halo.Min, halo.Max} {
		r, err := halo.Reduce(f, compiler, op)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(op, r.Floats[0])
	}
	// Output:
	// sum 168
	// min 0
	// max 7
}

func ExampleReduction() {
	f, compiler, closeAll := exampleField()
	defer closeAll()
	largest, err := halo.NewReduction(f, compiler, halo.Max)
	if err != nil {
		log.Fatal(err)
	}
	defer largest.Close()
	at, err := f.Placement.NewStreams()
	if err != nil {
		log.Fatal(err)
	}
	defer at.Close()
	for range 2 { // once made ready, it is queued any number of times
		if err := largest.Queue(at); err != nil {
			log.Fatal(err)
		}
		if err := at.Sync(time.Minute); err != nil {
			log.Fatal(err)
		}
		fmt.Println(largest.Result().Floats[0])
	}
	// Output:
	// 7
	// 7
}

func ExampleWrite() {
	f, _, closeAll := exampleField()
	defer closeAll()
	box := domain.Box{Lo: domain.Vec{1, 2, 0}, Hi: domain.Vec{3, 4, 1}} // of both subdomains
	if err := halo.Write(f, box, []float64{10, 20, 30, 40}); err != nil {
		log.Fatal(err)
	}
	row := domain.Box{Lo: domain.Vec{0, 3, 0}, Hi: domain.Vec{4, 4, 1}}
	got := make([]float64, row.Points())
	if err := halo.Read(got, f, row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: [0 30 40 3]
}

func ExampleWideHalo() {
	f, _, closeAll := exampleField()
	defer closeAll()
	wide, err := halo.NewWideHalo(f.Cut, domain.UniformRadius(2, 1), 3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ghosts:", wide.Spec(f.Spec).Width.Plus[1])
	exchange := func(step int) error {
		fmt.Println("exchange")
		return nil
	}
	sweep := func(step, rank int, region domain.Box) error {
		if rank == 0 {
			fmt.Println("sweep", region)
		}
		return nil
	}
	if err := wide.Run(4, exchange, sweep); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ghosts: 3
	// exchange
	// sweep [0,8)x[0,5)x[0,1)
	// sweep [0,8)x[0,4)x[0,1)
	// sweep [0,8)x[0,3)x[0,1)
	// exchange
	// sweep [0,8)x[0,5)x[0,1)
}

// A particle that lies in a cell between two subdomains adds to a ghost; its owner then has the sum.
func ExampleAccumulator() {
	f, compiler, closeAll := exampleField()
	defer closeAll()
	links, err := p2p.Discover(context.Background(), f.Placement.Devices, nil)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := halo.NewPlan(f.Placement, links, p2p.Auto, f.Spec)
	if err != nil {
		log.Fatal(err)
	}
	ghosts, err := halo.NewAccumulator(plan, compiler, f)
	if err != nil {
		log.Fatal(err)
	}
	defer ghosts.Close()
	at, err := f.Placement.NewStreams()
	if err != nil {
		log.Fatal(err)
	}
	defer at.Close()
	lower := f.Array(0, 0) // rank 0 owns y = 0, 1, 2
	here := streams.View[float64](lower.Data.Memory.Bytes()[lower.Data.Offset:])
	for x := range 8 {
		here[lower.Layout.Offset(domain.Vec{x, 3, 0})] = 0 // adds nothing
	}
	here[lower.Layout.Offset(domain.Vec{5, 3, 0})] = 0.25
	if err := ghosts.Start(at); err != nil {
		log.Fatal(err)
	}
	if err := ghosts.Wait(at); err != nil { // what is queued on the streams now comes after the sums
		log.Fatal(err)
	}
	if err := at.Sync(time.Minute); err != nil {
		log.Fatal(err)
	}
	row := domain.Box{Lo: domain.Vec{4, 3, 0}, Hi: domain.Vec{7, 4, 1}}
	got := make([]float64, row.Points())
	if err := halo.Read(got, f, row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: [4 5.25 6]
}
