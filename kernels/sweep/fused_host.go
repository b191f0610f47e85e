package sweep

import (
	"slices"

	"unsafe"

	"github.com/halox/halox/domain"
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
	s, g := r.Sweeper, f.all.group
	var totals **Totals
	if measured {
		totals = &f.totals
	}
	parts, err := g.hostParts("fused", r, slabs, totals)
	if err != nil {
		return nil, err
	}
	neighbours, frame := len(g.flags.Neighbours(f.rank)), len(s.plan.frame())
	spec := streams.KernelSpec{
		Name: "fused", Work: streams.Sweep, Uses: append(spansOf(slices.Concat(r.Arrays...)), g.flags.Report(f.rank).All()),
		Reaches: r.reaches(f.rank), Argument: append(s.plan.frame(), make([]byte, 8*neighbours)...),
	}
	expected := make([]uint64, neighbours)
	spec.RunWith = func(argument []byte) {
		counts(argument[frame:], expected)
		g.stageOnHost(f.rank, r, slabs, parts, argument[:frame], expected)
	}
	l, err := s.launch(spec, 0)
	if err != nil {
		return nil, err
	}
	l.frame = l.frame[:frame]
	g.resources.Add(l)
	made := &fusedLaunch{Launch: l}
	for at := range neighbours {
		made.expected = append(made.expected, (*int64)(unsafe.Pointer(&l.Argument()[frame+8*at])))
	}
	return made, nil
}

// stageOnHost makes a stage: parts are what sweeps the slabs and then the interior, with a frame, and
// expected the blocks of neighbours that must have finished before. It returns false after a wait in
// vain.
func (g *stageGroup) stageOnHost(rank int, r StageRank, slabs []slab, parts []func(frame []byte), frame []byte, expected []uint64) bool {
	for i, part := range parts {
		if i < len(slabs) && !g.awaitOnHost(rank, slabs[i], expected) {
			return false
		}
		part(frame)
		if i < len(slabs) {
			r.storeOnHost(slabs[i].box)
			g.signalOnHost(rank, slabs[i])
		}
	}
	if r.storesInside() {
		r.storeOnHost(r.Interior)
	}
	return true
}

// hostParts returns what sweeps the slabs and then the interior, one after another. Where totals is not nil
// the parts measure; it is what they are joined by, which is made unless it is there.
func (g *stageGroup) hostParts(name string, r StageRank, slabs []slab, totals **Totals) (parts []func(frame []byte), err error) {
	s := r.Sweeper
	boxes := make([][]domain.Box, 0, len(slabs)+1)
	for _, one := range slabs {
		boxes = append(boxes, []domain.Box{one.box})
	}
	if !r.Interior.Empty() {
		boxes = append(boxes, []domain.Box{r.Interior})
	}
	if totals != nil && *totals == nil {
		if *totals, err = g.hostTotals(s, len(boxes)); err != nil {
			return nil, err
		}
	}
	for i, b := range boxes {
		var slot slot
		if totals != nil {
			slot = (*totals).slotOnHost(i)
		}
		parts = append(parts, s.plan.hostSpec(name, r.Arrays, b, slot).RunWith)
	}
	return parts, nil
}

// hostTotals makes the totals of so many parts.
func (g *stageGroup) hostTotals(s *Sweeper, parts int) (*Totals, error) {
	t := &Totals{plan: s.plan}
	g.resources.Add(t)
	if err := t.allocate(s.device, int64(parts)); err != nil {
		return nil, err
	}
	var slots []slot
	for i := range parts {
		slots = append(slots, t.slotOnHost(i))
	}
	return t, t.joinOnHost(s.device, slots)
}
