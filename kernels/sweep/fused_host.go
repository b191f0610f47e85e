package sweep

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// onHost makes the launches of a stage on a host device ready. Their argument is the frame, and behind
// it the counts to wait for.
func (f *FusedStage) onHost(r StageRank, slabs []slab) (err error) {
	if f.plain, err = f.hostLaunch(r, slabs, false); err != nil || r.Sweeper.plan.totals() == 0 {
		return err
	}
	f.measured, err = f.hostLaunch(r, slabs, true)
	return err
}

// hostLaunch makes one of them ready.
func (f *FusedStage) hostLaunch(r StageRank, slabs []slab, measured bool) (*fusedLaunch, error) {
	s, g := r.Sweeper, f.group
	boxes := make([][]domain.Box, 0, len(slabs)+1)
	for _, one := range slabs {
		boxes = append(boxes, []domain.Box{one.box})
	}
	if !r.Interior.Empty() {
		boxes = append(boxes, []domain.Box{r.Interior})
	}
	parts, err := f.hostParts(r, boxes, measured)
	if err != nil {
		return nil, err
	}
	peers, frame := len(g.peers[f.rank]), len(s.plan.frame())
	spec := streams.KernelSpec{
		Name: "fused", Work: streams.Sweep, Uses: append(spansOf(slices.Concat(r.Arrays...)), g.reports[f.rank].All()),
		Argument: append(s.plan.frame(), make([]byte, 8*peers)...),
	}
	for _, st := range r.Stores {
		if st.To != f.rank {
			spec.Reaches = append(spec.Reaches, st.Array.Data)
		}
	}
	spec.RunWith = func(argument []byte) {
		for i, part := range parts {
			if i < len(slabs) && !f.awaitOnHost(slabs[i], argument[frame:]) {
				return
			}
			part(argument[:frame])
			if i < len(slabs) {
				for _, st := range r.Stores {
					storeRows(r.Arrays[st.Access][st.Component], slabs[i].box, st)
				}
				f.signalOnHost(slabs[i])
			}
		}
	}
	l, err := s.launch(spec, 0)
	if err != nil {
		return nil, err
	}
	l.frame = l.frame[:frame]
	g.resources.Add(l)
	made := &fusedLaunch{Launch: l}
	for at := range peers {
		made.expected = append(made.expected, (*int64)(unsafe.Pointer(&l.Argument()[frame+8*at])))
	}
	return made, nil
}

// hostParts returns what sweeps the boxes one after another, and where the stage is measured makes its
// totals.
func (f *FusedStage) hostParts(r StageRank, boxes [][]domain.Box, measured bool) (parts []func(frame []byte), err error) {
	s := r.Sweeper
	var slots [][]float64
	if measured {
		f.totals = &Totals{plan: s.plan}
		f.group.resources.Add(f.totals)
		if err := f.totals.allocate(s.device, int64(len(boxes))); err != nil {
			return nil, err
		}
	}
	for i, b := range boxes {
		var slot []float64
		if measured {
			at := f.totals.slot(int64(i))
			slot = streams.View[float64](at.Memory.Bytes()[at.Offset : at.Offset+at.Length])
			slots = append(slots, slot)
		}
		parts = append(parts, s.plan.hostSpec("fused", r.Arrays, b, slot).RunWith)
	}
	if measured {
		return parts, f.totals.joinOnHost(s.device, slots)
	}
	return parts, nil
}

// awaitOnHost waits until the peers of a slab have finished the stages before. It returns false, and
// reports it, if that takes too long, or if the rank has given up before.
func (f *FusedStage) awaitOnHost(s slab, expected []byte) bool {
	g := f.group
	report := word(g.reports[f.rank], 0)
	for _, other := range s.peers {
		at := slices.Index(g.peers[f.rank], other)
		want := binary.NativeEndian.Uint64(expected[8*at:])
		if atomic.LoadUint64(report) > 0 {
			return false
		}
		if !awaitCount(word(g.counts[f.rank], int64(other)*lineBytes), want, g.limit) {
			atomic.StoreUint64(report, uint64(1+at))
			return false
		}
	}
	return true
}

// awaitCount waits until a count has reached a value.
func awaitCount(count *uint64, value uint64, limit time.Duration) bool {
	var start time.Time
	for polls := 0; atomic.LoadUint64(count) < value; polls++ {
		if polls%64 != 0 {
			continue
		}
		runtime.Gosched()
		if start.IsZero() {
			start = time.Now()
		} else if time.Since(start) > limit {
			return false
		}
	}
	return true
}

// signalOnHost counts a stage of a slab for its peers, as often as it has blocks.
func (f *FusedStage) signalOnHost(s slab) {
	for _, other := range s.peers {
		atomic.AddUint64(word(f.group.counts[other], int64(f.rank)*lineBytes), uint64(s.blocks))
	}
}

// storeRows stores those points of a box that go into ghosts.
func storeRows(src kernels.Array, box domain.Box, st Store) {
	send := st.Send.Intersect(box)
	if send.Empty() {
		return
	}
	shift, size := st.Ghost.Lo.Sub(st.Send.Lo), int64(src.Layout.ElementSize)
	bytes := func(a kernels.Array) []byte { return a.Data.Memory.Bytes()[a.Data.Offset:] }
	from, to, n := bytes(src), bytes(st.Array), int64(send.Size()[0])*size
	for z := send.Lo[2]; z < send.Hi[2]; z++ {
		for y := send.Lo[1]; y < send.Hi[1]; y++ {
			p := domain.Vec{send.Lo[0], y, z}
			o, q := src.Layout.Offset(p)*size, st.Array.Layout.Offset(p.Add(shift))*size
			copy(to[q:q+n], from[o:o+n])
		}
	}
}
