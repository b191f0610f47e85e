package kernels

import (
	"runtime"
	"sync/atomic"
	"time"

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
	steps := stepsOf[float64]
	if n.real == Float32 {
		steps = stepsOf[float32]
	}
	spec.Run = func() { steps(s, n, i, <-s.queued) }
	if s.kernel, err = newKernel(s.device, spec); err == nil {
		s.Add(s.kernel)
	}
	return err
}

// stepsOf is the host version of step.cu.
func stepsOf[T rows.Float](s *Stepper, n *stepNet, i int, span stepSpan) {
	end, part := n.ends[i], n.parts[i]
	for step := span.first; step < span.first+span.count; step++ {
		dst, src := end.Fields[step%2], end.Fields[1-step%2]
		for _, sh := range part.shells {
			for _, at := range sh.neighbours {
				if !n.awaitOnHost(s, i, at, step-1) {
					return
				}
			}
			sweepBands[T](n.star, dst, src, []domain.Box{sh.box})
			for _, t := range sh.stores {
				storeGhosts[T](dst, sh.box, end.Stores[t], n.ends[end.Stores[t].To].Fields[step%2])
			}
			for _, at := range sh.neighbours {
				other := part.neighbours[at]
				atomic.AddUint64(word(n.counts[other], int64(n.place(i, other))*flagBytes), 1)
			}
		}
		if !end.Interior.Empty() {
			sweepBands[T](n.star, dst, src, []domain.Box{end.Interior})
		}
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
		}
	}
}

// awaitOnHost waits until a neighbour has finished a step. It returns false, and says so,
// if that takes too long, or if the end has given up before.
func (n *stepNet) awaitOnHost(s *Stepper, i, at int, step int64) bool {
	const spins = 100
	count := word(n.counts[i], int64(at)*flagBytes)
	want := uint64(step * n.expected(n.parts[i].neighbours[at], i))
	failed := word(s.failed, 0)
	for start, spin := time.Now(), 0; atomic.LoadUint64(count) < want; spin++ {
		if atomic.LoadUint64(failed) > 0 {
			return false
		}
		if time.Since(start) > n.limit {
			atomic.StoreUint64(failed, uint64(1+at))
			return false
		}
		if runtime.Gosched(); spin > spins {
			time.Sleep(20 * time.Microsecond)
		}
	}
	return true
}
