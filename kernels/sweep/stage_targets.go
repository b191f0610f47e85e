package sweep

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// targets is struct Targets of stage.cuh.
type targets struct {
	all   words           // of struct Target
	lists []uint32        // where each list begins, and the last ends
	table [2]streams.Span // where upload has put them
}

// newTargets lists where points of slabs go, and those of the interior if some do: for each and for each
// written array in turn.
func newTargets(r StageRank, slabs []slab) (t targets) {
	t.lists = []uint32{0}
	for _, one := range slabs {
		t.list(r, one.box)
	}
	if r.storesInside() {
		t.list(r, r.Interior)
	}
	return t
}

// list lists where points of a box go.
func (t *targets) list(r StageRank, box domain.Box) {
	for w := range r.Sweeper.plan.writes {
		for _, s := range r.Stores {
			if r.Sweeper.plan.written(s.Access, s.Component) == w && !s.Send.Intersect(box).Empty() {
				t.all.putTarget(r, s)
			}
		}
		t.lists = append(t.lists, uint32(len(t.all)/targetBytes))
	}
}

// room returns for how many targets the argument of a launch shall have room; 0 where they are too many.
func (t *targets) room() int {
	for _, room := range targetRooms {
		if len(t.all) <= room*targetBytes {
			return room
		}
	}
	return 0
}

// targetRooms are those of stars and of boxes that reach one point.
var targetRooms = []int{6, 26}

// upload puts the targets into device memory, for launches without room.
func (t *targets) upload(d *streams.Device, made *streams.Resources) error {
	lists, err := streams.Upload(d, t.lists)
	if err != nil {
		return err
	}
	made.Add(lists)
	t.table[1] = lists.All()
	if len(t.all) == 0 {
		return nil
	}
	all, err := streams.Upload(d, []byte(t.all))
	if err != nil {
		return err
	}
	made.Add(all)
	t.table[0] = all.All()
	return nil
}

// uses returns the device memory in which launches find the targets.
func (t *targets) uses() (all []streams.Span) {
	for _, s := range t.table {
		if s.Memory != nil {
			all = append(all, s)
		}
	}
	return all
}

// listsOf is how many numbers struct Targets has for the lists of so many written arrays.
func listsOf(writes int) int { return maxSlabs*writes + 2 }

// targetsBytes is the size of struct Targets.
func targetsBytes(room, writes int) int {
	if room == 0 {
		return 2 * 8
	}
	return room*targetBytes + 4*listsOf(writes)
}

// putTargets puts struct Targets.
func (w *words) putTargets(t targets, room, writes int) {
	if room == 0 {
		w.put(int64(t.table[0].Address()), int64(t.table[1].Address()))
		return
	}
	end := len(*w) + targetsBytes(room, writes)
	*w = append(*w, t.all...)
	*w = append(*w, make([]byte, room*targetBytes-len(t.all))...)
	for _, n := range t.lists {
		w.putNarrow(int(n))
	}
	*w = append(*w, make([]byte, end-len(*w))...)
}

// targetBytes is the size of struct Target of slab.cuh.
const targetBytes = 9 * 8

// putTarget puts struct Target.
func (w *words) putTarget(r StageRank, s Store) {
	w.putNarrow(s.Send.Lo[:]...)
	w.putNarrow(s.Send.Hi[:]...)
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
