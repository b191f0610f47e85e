package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// StageRank is what one device does in a stage of the time steps of one phase: it sweeps its points,
// and stores those that others need into their ghosts.
type StageRank struct {
	Sweeper  *Sweeper
	Arrays   Arrays
	Boundary []domain.Box // the boundary region, up to six boxes that do not overlap
	Interior domain.Box   // all other owned points: none is stored elsewhere, none reads a ghost that is
	Stores   []Store

	// Alone says that no rank has to do with another in the stage, nor in the stages before and after it: it waits for nobody and tells
	// nobody, and its interior may read ghosts that others store in other stages. The stage before it that is not alone has waited for
	// what it reads, and the one after it tells that it has been read. It is the same on all ranks, and stores into ghosts of its own alone.
	Alone bool

	// Continued says that the next stage is the rest of this one: it waits for no more than this one has waited for, and neighbours
	// wait for both. It is the same on all ranks. FusedStages have such stages.
	Continued bool

	core domain.Box // see absorbSlabs
}

// Store says where boundary points of a written array go beside their own place. For ghosts behind walls
// that a field is odd about, Odd says where, from each point, the value of such a wall lies in the array
// of this rank, a ghost that no store writes: v becomes 2*wall - v, for one wall after the other.
type Store struct {
	Access, Component int
	Send, Ghost       domain.Box    // of equal size: owned by this rank, and ghosts of the other
	To                int           // rank, maybe the same one
	Array             kernels.Array // of the other
	Odd               []domain.Vec  // up to three, of arrays of reals
}

// Within returns the part of a store that leaves points of a box; ok is false where none do.
func (s Store) Within(box domain.Box) (part Store, ok bool) {
	shift := s.Ghost.Lo.Sub(s.Send.Lo)
	s.Send = s.Send.Intersect(box)
	s.Ghost = s.Send.Shift(shift)
	return s, !s.Send.Empty()
}

// maxOdd is how many walls a store may reflect about: one an axis.
const maxOdd = 3

// reflects reports whether points are reflected on their way into ghosts.
func (r StageRank) reflects() bool {
	return slices.ContainsFunc(r.Stores, func(s Store) bool { return len(s.Odd) > 0 })
}

// check returns an error unless a rank can make the stage together with those of the devices.
func (r StageRank) check(devices []*streams.Device) error {
	if len(r.Boundary) > maxSlabs {
		return fmt.Errorf("sweep: a boundary region of %d boxes; %d are possible", len(r.Boundary), maxSlabs)
	}
	boxes := slices.Clone(r.Boundary)
	if !r.Interior.Empty() {
		boxes = append(boxes, r.Interior)
	}
	for first := 0; first < len(boxes); first += maxBoxes {
		if err := r.Sweeper.check(r.Arrays, boxes[first:min(first+maxBoxes, len(boxes))]); err != nil {
			return err
		}
	}
	for _, b := range boxes {
		if n := b.Points(); n >= 1<<31 && b != r.Interior || max(b.Hi[0], b.Hi[1], b.Hi[2]) >= 1<<31 {
			return fmt.Errorf("sweep: a stage of %d points in the box %v; fewer than 2^31 are possible along an axis, and in one of the boundary region", n, b)
		}
	}
	for _, s := range r.Stores {
		if r.Alone && s.Array != r.Arrays[s.Access][s.Component] {
			return fmt.Errorf("sweep: a stage that is alone with a store into rank %d", s.To)
		}
		if s.To < 0 || s.To >= len(devices) || s.Send.Empty() || s.Send.Size() != s.Ghost.Size() || r.Sweeper.plan.written(s.Access, s.Component) < 0 {
			return fmt.Errorf("sweep: a store of access %d, component %d, from %v into %v of rank %d", s.Access, s.Component, s.Send, s.Ghost, s.To)
		}
		if err := r.checkTarget(s, devices[s.To]); err != nil {
			return err
		}
		if err := r.checkOdd(s); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget returns an error unless a store goes into ghosts of an array of its values on the device.
func (r StageRank) checkTarget(s Store, d *streams.Device) error {
	a := s.Array
	if err := a.Holds(s.Ghost); err != nil {
		return err
	}
	if e := r.Sweeper.plan.accesses[s.Access].Element; a.Layout.ElementSize != e.size() {
		return fmt.Errorf("sweep: a store of %s into an array of rank %d with elements of %d bytes", e, s.To, a.Layout.ElementSize)
	}
	if !a.Layout.Owned.Intersect(s.Ghost).Empty() {
		return fmt.Errorf("sweep: a store into %v of rank %d, which are no ghosts of %v", s.Ghost, s.To, a.Layout.Owned)
	}
	if m := a.Data.Memory; m == nil || m.Device() != d {
		return fmt.Errorf("sweep: a store for rank %d, on device %v, into %v", s.To, d, a.Data)
	}
	return nil
}

// checkOdd returns an error unless a store can reflect.
func (r StageRank) checkOdd(s Store) error {
	if n := len(s.Odd); n > maxOdd || n > 0 && !r.Sweeper.plan.accesses[s.Access].Element.real() {
		return fmt.Errorf("sweep: a store that reflects about %d values; reals can about %d", n, maxOdd)
	}
	for _, o := range s.Odd {
		if o == (domain.Vec{}) {
			return fmt.Errorf("sweep: a store that reflects about itself")
		}
		if err := r.Arrays[s.Access][s.Component].Holds(s.Send.Shift(o)); err != nil {
			return err
		}
	}
	return nil
}

// written returns the place of a component among the written arrays, -1 if it is none.
func (n *plan) written(access, component int) int {
	return slices.IndexFunc(n.writes, func(w writtenArray) bool { return w.access == access && w.component == component })
}

// reaches returns the memory of other ranks that a rank stores into.
func (r StageRank) reaches(rank int) (all []streams.Span) {
	for _, s := range r.Stores {
		if s.To != rank {
			all = append(all, s.Array.Data)
		}
	}
	return all
}

// storeOnHost stores those points of a box that go into ghosts.
func (r StageRank) storeOnHost(box domain.Box) {
	for _, st := range r.Stores {
		src := r.Arrays[st.Access][st.Component]
		if r.Sweeper.plan.accesses[st.Access].Element == "float32" {
			storeRows[float32](src, box, st)
		} else if r.Sweeper.plan.accesses[st.Access].Element == "float64" {
			storeRows[float64](src, box, st)
		} else {
			storeBytes(src, box, st)
		}
	}
}

// eachRow calls do with the places, in elements, of the rows of a box that go into ghosts.
func (st Store) eachRow(src kernels.Array, box domain.Box, do func(p domain.Vec, from, to, n int64)) {
	send := st.Send.Intersect(box)
	if send.Empty() {
		return
	}
	shift, n := st.Ghost.Lo.Sub(st.Send.Lo), int64(send.Size()[0])
	for z := send.Lo[2]; z < send.Hi[2]; z++ {
		for y := send.Lo[1]; y < send.Hi[1]; y++ {
			p := domain.Vec{send.Lo[0], y, z}
			do(p, src.Layout.Offset(p), st.Array.Layout.Offset(p.Add(shift)), n)
		}
	}
}

func storeRows[T rows.Float](src kernels.Array, box domain.Box, st Store) {
	from, to := values[T](&src), values[T](&st.Array)
	st.eachRow(src, box, func(p domain.Vec, o, q, n int64) {
		copy(to[q:q+n], from[o:o+n])
		for _, odd := range st.Odd {
			wall := from[src.Layout.Offset(p.Add(odd)):]
			for i := range n {
				to[q+i] = 2*wall[i] - to[q+i]
			}
		}
	})
}

func storeBytes(src kernels.Array, box domain.Box, st Store) {
	from, to, size := values[byte](&src), values[byte](&st.Array), int64(src.Layout.ElementSize)
	st.eachRow(src, box, func(_ domain.Vec, o, q, n int64) {
		copy(to[q*size:(q+n)*size], from[o*size:(o+n)*size])
	})
}
