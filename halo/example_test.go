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

// openPlane returns two CPU devices and a plane of 4 x 4 points on them, the lower half on the first device,
// the upper half on the second.
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

// After an exchange, the ghosts of each subdomain have the values of its neighbors.
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
	values := kernels.ValuesOf[int64](f.Parts[1]) // the upper half, in host memory
	ghosts := values.Data[values.Index(0, 1, 0):][:4]
	clear(ghosts)
	fmt.Println(ghosts)
	if err := errors.Join(exchange.Exchange(at), at.Sync(time.Minute)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ghosts)
	// Output:
	// [0 0 0 0]
	// [10 11 12 13]
}

// Two fields are exchanged in one message, planned before anything is allocated.
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

// The error suggests what to change.
func ExampleNewField() {
	session, place := openPlane()
	defer session.Close()
	_, err := halo.NewField(place, halo.Spec{Name: "f", Element: halo.Float64, Width: domain.UniformRadius(2, 3)})
	fmt.Println(err)
	// Output:
	// halo: field "f": domain: subdomain 0 owns 2 layers along y, its neighbor in y+ needs 3: use 1 part or a larger grid
}

// A staggered field has one more point between physical boundaries. Read takes any box of it.
func ExampleRead() {
	session, place := openPlane()
	defer session.Close()
	vy, err := halo.NewField(place, halo.Spec{Name: "vy", Element: halo.Float32, Stagger: []bool{false, true}})
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

// Fill passes whole rows, to several goroutines concurrently.
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

// Work that does not use ghosts can be queued between Start and Wait, and overlaps with the messages.
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
	if err := at.Sync(time.Minute); err != nil {
		log.Fatal(err)
	}
	values, err := halo.ReadAll[int64](f)
	fmt.Println(values, err)
	// Output: [3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3] <nil>
}

// Every subdomain has added 1 to its own points and 10 to its ghosts, like a particle scatter. The reverse
// exchange adds the ghosts to their owners.
func ExampleNewAccumulator() {
	session, place := openPlane()
	defer session.Close()
	f := intField(place, "f")
	plan, err1 := halo.NewPlan(place, session.Links, p2p.Auto, f.Spec)
	at, err2 := place.NewStreams()
	err3 := halo.Fill(f, func(rank int) halo.Row[int64] {
		owned := place.Subdomains[rank].Box
		return func(values []int64, at domain.Vec) {
			for i := range values {
				values[i] = 10
				if owned.Contains(domain.Vec{at[0] + i, at[1], at[2]}) {
					values[i] = 1
				}
			}
		}
	})
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	reverse, err := halo.NewAccumulator(plan, session.Compiler, f)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(reverse.Exchange(at), at.Sync(time.Minute)); err != nil {
		log.Fatal(err)
	}
	values, err := halo.ReadAll[int64](f)
	fmt.Println(values, err)
	// Output: [1 1 1 1 11 11 11 11 11 11 11 11 1 1 1 1] <nil>
}

// WrapField makes a field of a program's arrays, here Go slices on CPU devices. On a GPU they are addresses,
// see streams.Device.WrapMemory.
func ExampleWrapField() {
	session, place := openPlane()
	defer session.Close()
	spec := halo.Spec{Name: "mine", Element: halo.Float32, Width: domain.UniformRadius(2, 1)}
	var arrays []kernels.Array
	for rank, s := range place.Subdomains {
		const pitch, first = 6, 6 + 1 // 4 x 2 points and their ghosts, row by row
		layout, err1 := domain.NewStridedLayout(s.Box, spec.Width, spec.Element.Size(), first, pitch, 4*pitch)
		memory, err2 := place.Devices[rank].WrapBytes(make([]byte, layout.Bytes()))
		if err := errors.Join(err1, err2); err != nil {
			log.Fatal(err)
		}
		arrays = append(arrays, kernels.Array{Data: memory.All(), Layout: layout})
	}
	f, err := halo.WrapField(place, spec, arrays...)
	if err != nil {
		log.Fatal(err)
	}
	exchange, err := session.NewExchanger(context.Background(), f)
	fmt.Println(f.Parts[0].Layout.Bytes(), "bytes,", exchange != nil, err)
	// Output: 96 bytes, true <nil>
}

// A dry run determines the memory of fields and messages before anything is allocated.
func ExamplePlacement_DryRun() {
	session, place := openPlane()
	defer session.Close()
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}
	plan, err := halo.NewPlan(place, session.Links, p2p.Staged, spec)
	if err != nil {
		log.Fatal(err)
	}
	dry := place.DryRun()
	defer streams.CloseAll(dry.Devices)
	u, err := halo.NewField(dry, spec)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := halo.NewExchanger(plan.On(dry), session.Compiler, u); err != nil {
		log.Fatal(err)
	}
	now := dry.Devices[0].Held()
	fmt.Printf("%d bytes on the device, %d pinned\n", now.Memory, now.Pinned)
	// Output: 768 bytes on the device, 32 pinned
}

// A box may span several subdomains.
func ExampleWrite() {
	session, place := openPlane()
	defer session.Close()
	f := intField(place, "f")
	err1 := halo.FillPoints(f, func(p domain.Vec) int64 { return int64(p[0]) })
	box := domain.Box{Lo: domain.Vec{1, 1, 0}, Hi: domain.Vec{3, 3, 1}}
	err2 := halo.Write(f, box, []int64{10, 20, 30, 40})
	values, err3 := halo.ReadAll[int64](f)
	fmt.Println(values, errors.Join(err1, err2, err3))
	// Output: [0 1 2 3 0 10 20 3 0 30 40 3 0 1 2 3] <nil>
}

// A prepared reduction can be queued any number of times; Reduce does everything at once.
func ExampleReduction() {
	session, place := openPlane()
	defer session.Close()
	f := intField(place, "f")
	largest, err1 := halo.NewReduction(f, session.Compiler, halo.Max)
	at, err2 := place.NewStreams()
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	for i := range int64(2) {
		err := halo.FillPoints(f, func(p domain.Vec) int64 { return int64(p[0]) + 10*i })
		if err := errors.Join(err, largest.Queue(at), at.Sync(time.Minute)); err != nil {
			log.Fatal(err)
		}
		fmt.Println("max", largest.Result().Ints[0])
	}
	sum, err := halo.Reduce(f, session.Compiler, halo.Sum)
	fmt.Println("sum", sum.Ints[0], err)
	// Output:
	// max 3
	// max 13
	// sum 184 <nil>
}

// Two steps between two exchanges: each sweep covers one layer less of the ghosts.
func ExampleWideHalo() {
	session, place := openPlane()
	defer session.Close()
	wide, err := halo.NewWideHalo(place.Decomposition, domain.UniformRadius(2, 1), 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ghosts:", wide.Width().Plus[1])
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
	if err := wide.Run(3, exchange, sweep); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ghosts: 2
	// exchange
	// sweep [0,4)x[0,3)x[0,1)
	// sweep [0,4)x[0,2)x[0,1)
	// exchange
	// sweep [0,4)x[0,3)x[0,1)
}

// Devices 0 and 2, and devices 1 and 3, have fast links. MapDevices places a chain of four subdomains on
// them.
func ExampleMapDevices() {
	devices, err := streams.HostPlatform(4).Open()
	if err != nil {
		panic(err)
	}
	defer streams.CloseAll(devices)
	grid, _ := domain.NewGrid([]int{64, 64}, nil)
	cut, _ := domain.Decompose(grid, domain.Vec{1, 4, 1})
	cost := func(from, to *streams.Device, bytes int64) float64 {
		if from.ID%2 == to.ID%2 {
			return float64(bytes) / 400
		}
		return float64(bytes) / 25
	}
	u := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}
	place, why, err := halo.MapDevices(cut, devices, cost, u)
	if err != nil {
		panic(err)
	}
	fmt.Println(place.Devices)
	fmt.Println(why)
	// Output:
	// [host 0 host 2 host 1 host 3]
	// cost of the busiest device: as given 40.96, greedy 21.76, exact 21.76: subdomains are on devices [0 2 1 3] of those given
}
