package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
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
}

// Store says where boundary points of a written array go beside their own place.
type Store struct {
	Access, Component int
	Send, Ghost       domain.Box    // of equal size: owned by this rank, and ghosts of the other
	To                int           // rank, maybe the same one
	Array             kernels.Array // of the other
}

// check returns an error unless a rank among so many can make the stage.
func (r StageRank) check(ranks int) error {
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
	for _, s := range r.Stores {
		if s.To < 0 || s.To >= ranks || s.Send.Empty() || s.Send.Size() != s.Ghost.Size() || r.Sweeper.plan.written(s.Access, s.Component) < 0 {
			return fmt.Errorf("sweep: a store of access %d, component %d, from %v into %v of rank %d", s.Access, s.Component, s.Send, s.Ghost, s.To)
		}
		if !s.Send.Intersect(r.Interior).Empty() {
			return fmt.Errorf("sweep: a store of %v, of which points lie in the interior %v", s.Send, r.Interior)
		}
		if err := s.Array.Holds(s.Ghost); err != nil {
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
