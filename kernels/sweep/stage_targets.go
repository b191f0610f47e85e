package sweep

import (
	"github.com/halox/halox/streams"
)

// targets is struct Targets of slab.cuh.
type targets struct{ all, ends uint64 }

func (w *words) putTargets(t targets) { w.put(int64(t.all), int64(t.ends)) }

// newTargets puts where points of slabs go into device memory: for each slab and written array in turn.
func newTargets(r StageRank, slabs []slab, made *streams.Resources) (t targets, err error) {
	var all words
	var ends []int64
	for _, one := range slabs {
		for w := range r.Sweeper.plan.writes {
			for _, s := range r.Stores {
				if r.Sweeper.plan.written(s.Access, s.Component) == w && !s.Send.Intersect(one.box).Empty() {
					all.putTarget(r, s)
				}
			}
			ends = append(ends, int64(len(all)/targetBytes))
		}
	}
	if len(slabs) == 0 {
		return t, nil
	}
	lengths, err := streams.Upload(r.Sweeper.device, ends)
	if err != nil {
		return t, err
	}
	made.Add(lengths)
	t.ends = lengths.Address()
	if len(all) == 0 {
		return t, nil
	}
	table, err := streams.Upload(r.Sweeper.device, []byte(all))
	if err != nil {
		return t, err
	}
	made.Add(table)
	t.all = table.Address()
	return t, nil
}

// targetBytes is the size of struct Target of slab.cuh.
const targetBytes = 12 * 8

// putTarget puts struct Target.
func (w *words) putTarget(r StageRank, s Store) {
	for a := range 3 {
		w.put(int64(s.Send.Lo[a]))
	}
	for a := range 3 {
		w.put(int64(s.Send.Hi[a]))
	}
	l := s.Array.Layout
	w.put(int64(s.Array.Data.Address()) + l.Offset(s.Ghost.Lo.Sub(s.Send.Lo))*int64(l.ElementSize))
	w.put(l.Pitch, l.Plane)
	own := r.Arrays[s.Access][s.Component].Layout
	var odd [maxOdd]int64
	for i, o := range s.Odd {
		odd[i] = own.Offset(s.Send.Lo.Add(o)) - own.Offset(s.Send.Lo)
	}
	w.put(odd[:]...)
}
