package pack_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Devices in a ring store boxes of bytes into the memory of their neighbors: few boxes, and enough for a table, by
// one kernel or by launches between the halves of an exchange. In each round all memory must equal that after
// plain copies.
func TestDirectExchange(t *testing.T) {
	for _, each := range []int{3, 6} {
		t.Run(fmt.Sprintf("boxes=%d/backend=cuda", each), func(t *testing.T) { directExchange(t, testdevices.GPUs(t), each) })
		t.Run(fmt.Sprintf("boxes=%d/backend=cuda-on-cpu", each), func(t *testing.T) { directExchange(t, testdevices.CPU(t, 4), each) })
	}
}

// ring holds devices that exchange with the previous and the next one.
type ring struct {
	t      *testing.T
	all    []*kerneltest.Bench
	memory []*streams.Memory
	each   int // boxes sent to each neighbor
}

// Memory begins with the data to send, followed by that from the previous and from the next device.
const ringPart = 8000

func directExchange(t *testing.T, s *testdevices.Set, each int) {
	r := &ring{t: t, each: each}
	for i, d := range s.Devices {
		r.all = append(r.all, kerneltest.NewBench(t, &testdevices.Set{Devices: s.Devices[i:], Compiler: s.Compiler}))
		r.memory = append(r.memory, test.Must(d.Alloc(3*ringPart))(t))
	}
	if len(r.all) < 3 {
		t.Skip("SKIPPED: a ring needs three devices")
	}
	ranks := make([]pack.DirectExchangeRank, len(r.all))
	for i, b := range r.all {
		ranks[i].Device = b.Device
		for side := range 2 {
			to := r.neighbor(i, side)
			test.Check(t, b.Device.EnablePeer(r.all[to].Device))
			ranks[i].Neighbors = append(ranks[i].Neighbors, to)
			for n := range each {
				ranks[i].Stores = append(ranks[i].Stores, r.box(i, side, n))
			}
		}
	}
	exchanges := test.Must(pack.NewDirectExchanges(s.Compiler, ranks, kerneltest.Limit))(t)
	for round := range 4 {
		want := r.fill()
		for i := range exchanges {
			r.copyOnHost(want, i)
			if i&1 != round&1 || round == 3 {
				test.Check(t, exchanges[i].Queue(r.all[i].Stream))
				continue
			}
			copier := test.Must(pack.NewBoxCopier(s.Compiler, s.Devices[i]))(t)
			stores := test.Must(copier.Copies("store", ranks[i].Stores...))(t)
			test.Check(t, exchanges[i].Begin(r.all[i].Stream))
			test.Check(t, r.all[i].Stream.Launch(stores.Kernel))
			test.Check(t, exchanges[i].End(r.all[i].Stream))
			defer stores.Close()
		}
		for i, b := range r.all {
			b.Do()
			test.Check(t, exchanges[i].Err())
			holds(b, r.memory[i].All(), want[i], "device %d", i)
		}
	}
	for i := range exchanges {
		test.Check(t, exchanges[i].Close())
	}
}

// neighbor is the previous or the next device.
func (r *ring) neighbor(i, side int) int { return (i + len(r.all) - 1 + 2*side) % len(r.all) }

// box returns the n-th box that a device stores on one side. Boxes do not overlap.
func (r *ring) box(i, side, n int) pack.Copy {
	first := int64(100 + 1001*n)
	return pack.Copy{
		Src:  pack.Place{Data: r.memory[i].Span(0, ringPart), First: first, Pitch: 40, Plane: 200},
		Dst:  pack.Place{Data: r.memory[r.neighbor(i, side)].Span(int64(2-side)*ringPart, ringPart), First: first + int64(3*n), Pitch: 36, Plane: 144},
		Size: domain.Vec{8 + 5*n, 1 + n%4, 1 + (n+side)%3}, ElementSize: 1,
	}
}

// fill fills all memory with random bytes, and returns them.
func (r *ring) fill() (all [][]byte) {
	for i, b := range r.all {
		all = append(all, random(3*ringPart))
		kerneltest.Put(b, r.memory[i].All(), all[i])
	}
	return all
}

// copyOnHost performs the copies of a device on images of the memory.
func (r *ring) copyOnHost(images [][]byte, i int) {
	for side := range 2 {
		for n := range r.each {
			c := r.box(i, side, n)
			to := images[r.neighbor(i, side)][c.Dst.Data.Offset:]
			kerneltest.EachPoint(domain.Box{Hi: c.Size}, func(p domain.Vec) {
				x, y, z := int64(p[0]), int64(p[1]), int64(p[2])
				to[c.Dst.First+x+y*c.Dst.Pitch+z*c.Dst.Plane] = images[i][c.Src.First+x+y*c.Src.Pitch+z*c.Src.Plane]
			})
		}
	}
}
