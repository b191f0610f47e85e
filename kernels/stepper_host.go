package kernels

import (
	"sync/atomic"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// onHost makes the launch of an end on a host device.
func (s *Stepper) onHost(n *stepNet, i int) (err error) {
	s.queued = make(chan stepSpan, mostQueued)
	spec := streams.KernelSpec{Name: string(n.kind), Work: streams.Sweep, Uses: []streams.Span{s.failed.All()}}
	for _, f := range n.ends[i].Fields {
		spec.Uses = append(spec.Uses, f.Data)
	}
	for _, st := range n.ends[i].Stores {
		for _, f := range n.ends[st.To].Fields {
			spec.Reaches = append(spec.Reaches, f.Data)
		}
	}
	steps := stepsOf[float64](s, n, i)
	if n.real == Float32 {
		steps = stepsOf[float32](s, n, i)
	}
	spec.Run = func() { steps(<-s.queued) }
	if s.plain.kernel, err = newKernel(s.device, spec); err == nil {
		s.Add(s.plain.kernel)
	}
	return err
}

// stepsOf is the host version of step.cu.
func stepsOf[T rows.Float](s *Stepper, n *stepNet, i int) func(span stepSpan) {
	end, part := n.ends[i], n.parts[i]
	var shells [2][]func() // sweeps, by the field that they write
	var interior [2]func()
	for to := range 2 {
		sweep := func(b domain.Box) func() {
			return sweepBoxes[T](n.stencil, end.Fields[to], end.Fields[1-to], []domain.Box{b}, nil)
		}
		for _, sh := range part.shells {
			shells[to] = append(shells[to], sweep(sh.box))
		}
		interior[to] = sweep(end.Interior)
	}
	return func(span stepSpan) {
		for step := span.first; step < span.first+span.count; step++ {
			to := step % 2
			for k, sh := range part.shells {
				if !n.awaitOnHost(s, i, sh, step-1) {
					return
				}
				shells[to][k]()
				for _, t := range sh.stores {
					storeGhosts[T](end.Fields[to], sh.box, end.Stores[t], n.ends[end.Stores[t].To].Fields[to])
				}
				n.tellOnHost(i, sh)
			}
			interior[to]()
		}
	}
}

// tellOnHost counts a step of a shell for its neighbours, as often as it has blocks.
func (n *stepNet) tellOnHost(i int, sh shellPart) {
	for _, at := range sh.neighbours {
		other := n.parts[i].neighbours[at]
		atomic.AddUint64(word(n.counts[other], int64(n.place(i, other))*flagBytes), uint64(sh.blocks))
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

// awaitOnHost waits until the neighbours of a shell have finished a step. It returns false,
// and says so, if that takes too long, or if the end has given up before.
func (n *stepNet) awaitOnHost(s *Stepper, i int, sh shellPart, step int64) bool {
	failed := word(s.failed, 0)
	for _, at := range sh.neighbours {
		want := uint64(step * n.expected(n.parts[i].neighbours[at], i))
		if atomic.LoadUint64(failed) > 0 {
			return false
		}
		if !awaitWord(word(n.counts[i], int64(at)*flagBytes), want, n.limit) {
			atomic.StoreUint64(failed, uint64(1+at))
			return false
		}
	}
	return true
}
