package boundary

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Tables hold the values that the moving faces of a subdomain have at several levels, on its device: of each face those of its first layer of
// ghosts, beside owned points and beside ghosts of neighbours that are swept; x fastest, level by level. They are for kernels that make
// several steps, of fields of one array. One thread drives them.
type Tables struct {
	resources streams.Resources
	faces     []*tableFace
	levels    int
	turn      int
}

// tableFace is the values of one face.
type tableFace struct {
	*movingFace
	side   domain.Direction
	bytes  int64 // of a level
	device *streams.Memory
	host   [2]*streams.Memory // used by turns
	used   [2]*streams.Event  // the values have been copied: host may change
}

// NewTables makes room for the values at so many levels, nil for a subdomain at which no face moves. Close frees it.
func (g *Ghosts) NewTables(rank, levels int) (t *Tables, err error) {
	sub, err := g.of(rank)
	if err != nil {
		return nil, err
	}
	sides := g.sidesOf(rank, (*Condition).moves)
	if len(sides) == 0 || levels < 1 {
		return nil, nil
	}
	if len(sides) != len(sub.moves) {
		return nil, fmt.Errorf("boundary: tables of field %q, which has %d arrays", g.field.Spec.Name, g.arrays())
	}
	t = &Tables{levels: levels}
	device, size := g.field.Placement.Devices[rank], int64(g.field.Array(rank, 0).Layout.ElementSize)
	for i, side := range sides {
		f := &tableFace{movingFace: sub.moves[i], side: side, bytes: sub.moves[i].ghosts.Points() * size}
		t.faces = append(t.faces, f)
		if f.device, err = device.Alloc(f.bytes * int64(levels)); err != nil {
			return nil, t.failed(err)
		}
		t.resources.Add(f.device)
		for k := range f.host {
			if f.host[k], err = device.AllocPinned(f.bytes * int64(levels)); err != nil {
				return nil, t.failed(err)
			}
			t.resources.Add(f.host[k])
			if f.used[k], err = device.NewEvent(); err != nil {
				return nil, t.failed(err)
			}
			t.resources.Add(f.used[k])
		}
	}
	return t, nil
}

// failed frees what there is.
func (t *Tables) failed(err error) error {
	_ = t.Close() // the first error tells more
	return err
}

// At returns the ghosts of a face and where its values lie; ok is false of one that does not move.
func (t *Tables) At(side domain.Direction) (ghosts domain.Box, values streams.Span, ok bool) {
	if t == nil {
		return ghosts, values, false
	}
	for _, f := range t.faces {
		if f.side == side {
			return f.ghosts, f.device.All(), true
		}
	}
	return ghosts, values, false
}

// Queue queues the values at some levels, the first of which is that of a step: level n is at time n times the length of a step.
func (t *Tables) Queue(s *streams.Stream, step int64, levels int, length float64) error {
	if t == nil || levels < 1 {
		return nil
	}
	if levels > t.levels {
		return fmt.Errorf("boundary: %d levels in tables of %d", levels, t.levels)
	}
	t.turn = 1 - t.turn
	for _, f := range t.faces {
		host, used := f.host[t.turn], f.used[t.turn]
		if err := used.Sync(profileLimit); err != nil {
			return err
		}
		for n := range int64(levels) {
			if err := f.evaluateInto(host.Bytes()[n*f.bytes:(n+1)*f.bytes], float64(step+n)*length); err != nil {
				return err
			}
		}
		bytes := f.bytes * int64(levels)
		if err := s.CopyAs(streams.OtherWork, f.device.Span(0, bytes), host.Span(0, bytes)); err != nil {
			return err
		}
		if err := s.Record(used); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what is held. Nothing queued may still use it. Closing twice is no error, nor is closing nil.
func (t *Tables) Close() error {
	if t == nil {
		return nil
	}
	return t.resources.Close()
}
