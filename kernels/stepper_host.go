package kernels

import (
	"sync/atomic"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// onHost makes the launch of a rank on a host device.
func (s *Stepper) onHost(n *stepGroup, i int) (err error) {
	s.queued = make(chan stepSpan, maxQueued)
	spec := streams.KernelSpec{Name: string(n.kind), Work: streams.Sweep, Uses: []streams.Span{s.failed.All()}}
	for _, f := range n.ranks[i].Fields {
		spec.Uses = append(spec.Uses, f.Data)
	}
	for _, st := range n.ranks[i].Stores {
		for _, f := range n.ranks[st.To].Fields {
			spec.Reaches = append(spec.Reaches, f.Data)
		}
	}
	steps := stepsOf[float64](s, n, i)
	if n.real == Float32 {
		steps = stepsOf[float32](s, n, i)
	}
	spec.Run = func() { steps(<-s.queued) }
	if s.plain.kernel, err = newKernel(s.device, spec); err == nil {
		s.resources.Add(s.plain.kernel)
	}
	return err
}

// stepsOf is the host version of step.cu.
func stepsOf[T rows.Float](s *Stepper, n *stepGroup, i int) func(span stepSpan) {
	rank, part := n.ranks[i], n.parts[i]
	var slabs [2][]func() // sweeps, by the field that they write
	var interior [2]func()
	for to := range 2 {
		sweep := func(b domain.Box) func() {
			return sweepBoxes[T](n.stencil, rank.Fields[to], rank.Fields[1-to], []domain.Box{b}, nil)
		}
		for _, slab := range part.slabs {
			slabs[to] = append(slabs[to], sweep(slab.box))
		}
		interior[to] = sweep(rank.Interior)
	}
	return func(span stepSpan) {
		for step := span.first; step < span.first+span.count; step++ {
			to := step % 2
			for k, slab := range part.slabs {
				if !n.awaitOnHost(s, i, slab, step-1) {
					return
				}
				slabs[to][k]()
				for _, t := range slab.stores {
					storeGhosts[T](rank.Fields[to], slab.box, rank.Stores[t], n.ranks[rank.Stores[t].To].Fields[to])
				}
				n.notifyOnHost(i, slab)
			}
			interior[to]()
		}
	}
}

// notifyOnHost counts a step of a slab for its neighbours, as often as it has blocks.
func (n *stepGroup) notifyOnHost(i int, slab boundarySlab) {
	for _, at := range slab.neighbours {
		_, its := n.flags.Pair(i, at, 0)
		atomic.AddUint64(flags.Word(its.Memory, its.Offset), uint64(slab.blocks))
	}
}

// storeGhosts stores those points of a box that go into ghosts.
func storeGhosts[T rows.Float](src Array, box domain.Box, st GhostStore, dst Array) {
	send := st.Send.Intersect(box)
	shift := st.Ghost.Lo.Sub(st.Send.Lo)
	from, to, nx := view[T](src.Data), view[T](dst.Data), int64(send.Size()[0])
	for z := send.Lo[2]; z < send.Hi[2]; z++ {
		for y := send.Lo[1]; y < send.Hi[1]; y++ {
			p := domain.Vec{send.Lo[0], y, z}
			o, q := src.Layout.Offset(p), dst.Layout.Offset(p.Add(shift))
			copy(to[q:q+nx], from[o:o+nx])
			for _, odd := range st.Odd {
				wall := from[src.Layout.Offset(p.Add(odd)):]
				for i := range nx {
					to[q+i] = 2*wall[i] - to[q+i]
				}
			}
		}
	}
}

// awaitOnHost waits until the neighbours of a slab have finished a step. It returns false,
// and says so, if that takes too long, or if the rank has given up before.
func (n *stepGroup) awaitOnHost(s *Stepper, i int, slab boundarySlab, step int64) bool {
	failed := flags.Word(s.failed, 0)
	for _, at := range slab.neighbours {
		want := uint64(step * n.expected(n.flags.Neighbours(i)[at], i))
		if atomic.LoadUint64(failed) > 0 {
			return false
		}
		mine := n.flags.Line(i, at, 0)
		if !flags.Await(flags.Word(mine.Memory, mine.Offset), want, n.limit) {
			atomic.StoreUint64(failed, uint64(1+at))
			return false
		}
	}
	return true
}
