package solvers

import (
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// movingWall is a Dirichlet wall of one subdomain whose value changes with
// time. The host evaluates it anew for every step, into pinned memory, and the
// device copies and unpacks that into the ghosts.
type movingWall struct {
	ghost  domain.Box
	value  *stencil.Evaluator
	row    []float64
	fields [2]wallSlot // for even and for odd steps
}

// wallSlot is the way of a wall's values into the ghosts of one field.
type wallSlot struct {
	host, device *streams.Memory
	unpack       *kernels.Copies
	used         *streams.Event // the values have been copied: host may change
}

// faces returns the sides of a subdomain that are walls for which want
// holds.
func (p *Problem) faces(pl *halo.Placement, rank int, want func(w Wall) bool) []domain.Direction {
	var sides []domain.Direction
	for i, face := range domain.Faces(p.Grid.Dims) {
		if _, inside := pl.Neighbour(rank, face); !inside && want(p.Walls[i]) {
			sides = append(sides, face)
		}
	}
	return sides
}

func isNeumann(w Wall) bool { return w.Kind == Neumann }
func moving(w Wall) bool    { return w.Kind == Dirichlet && w.Value.Uses("t") }

// wallAt returns the wall behind a face.
func (p *Problem) wallAt(side domain.Direction) Wall {
	face := 2 * side.Axis()
	if side.Positive() {
		face++
	}
	return p.Walls[face]
}

// newMovingWall makes the wall on one side of a part ready.
func (t *part) newMovingWall(p *Problem, side domain.Direction, fields [2]*halo.Field, copier *kernels.BoxCopier) (*movingWall, error) {
	// Further layers follow from the first by reflection.
	ghost := domain.GhostBox(fields[0].Parts[t.rank].Layout.Owned, side, domain.UniformRadius(p.Grid.Dims, 1))
	w := &movingWall{
		ghost: ghost,
		value: p.wallAt(side).Value.NewEvaluator(p.coordinates(0)),
		row:   make([]float64, ghost.Size()[0]),
	}
	bytes := ghost.Points() * int64(p.Real.Size())
	for i := range w.fields {
		s := &w.fields[i]
		var err error
		if s.host, err = t.device.AllocPinned(bytes); err != nil {
			return nil, err
		}
		t.resources.Add(s.host)
		if s.device, err = t.device.Alloc(bytes); err != nil {
			return nil, err
		}
		t.resources.Add(s.device)
		if s.used, err = t.device.NewEvent(); err != nil {
			return nil, err
		}
		t.resources.Add(s.used)
		if s.unpack, err = copier.Copies("wall", kernels.Unpack(fields[i].Parts[t.rank], ghost, s.device.All())); err != nil {
			return nil, err
		}
		t.resources.Add(s.unpack)
	}
	return w, nil
}

// queue sets the ghosts of the field of step n, which is at time t.
func (w *movingWall) queue(s *streams.Stream, n int64, t float64, real kernels.Real, limit time.Duration) error {
	slot := &w.fields[n%2]
	if err := slot.used.Sync(limit); err != nil {
		return err
	}
	w.value.SetTime(t)
	if real == kernels.Float32 {
		evaluate[float32](w, slot.host.Bytes())
	} else {
		evaluate[float64](w, slot.host.Bytes())
	}
	if err := s.CopyAs(streams.OtherWork, slot.device.All(), slot.host.All()); err != nil {
		return err
	}
	if err := s.Record(slot.used); err != nil {
		return err
	}
	return s.Launch(slot.unpack.Kernel)
}

// evaluate fills bytes with the values of the wall, x fastest.
func evaluate[T float32 | float64](w *movingWall, bytes []byte) {
	values := streams.View[T](bytes)
	for k := w.ghost.Lo[2]; k < w.ghost.Hi[2]; k++ {
		for j := w.ghost.Lo[1]; j < w.ghost.Hi[1]; j++ {
			w.value.Row(w.row, w.ghost.Lo[0], j, k)
			for i, v := range w.row {
				values[i] = T(v)
			}
			values = values[len(w.row):]
		}
	}
}
