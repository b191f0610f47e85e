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

// Every subdomain has added 1 to its own points and 10 to its ghosts, as a scatter of
// particles does. A reverse exchange gives owners what the ghosts got.
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
	if err := errors.Join(reverse.Exchange(at), at.Sync(time.Second)); err != nil {
		log.Fatal(err)
	}
	values, err := halo.ReadAll[int64](f)
	fmt.Println(values, err)
	// Output: [1 1 1 1 11 11 11 11 11 11 11 11 1 1 1 1] <nil>
}

// A program's own arrays, here Go slices on host devices, become a field. On a GPU
// they are addresses, see streams.Device.WrapMemory.
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

// What fields and messages take is known before anything is allocated: by making them on devices that only
// count.
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
