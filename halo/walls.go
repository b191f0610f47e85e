package halo

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Walls sets the ghosts of a field behind the walls of the grid, all layers of
// them, any number of times.
//
// In edges and corners, periodic axes and neighbours are followed first, then
// walls that repeat or mirror; of several Dirichlet walls that of the last axis
// counts. So walls come after the exchange, whose ghosts they repeat. Walls that
// are all Dirichlet need to be set once.
//
// One thread drives all subdomains with Queue, or a thread each its own with
// QueueOn.
type Walls struct {
	resources streams.Resources
	field     *Field
	launches  [][]*kernels.Copies // by rank, in order: an axis each
	closed    bool
}

// NewWalls makes the walls ready, at most one for each face of the grid at which an
// axis ends. Faces for which none is given keep the ghosts that they have. A wall
// that mirrors needs as many owned layers as there are ghosts, and the numbers of a
// Dirichlet wall must be some that the elements can hold. Close frees what is held.
func NewWalls(f *Field, c *kernels.Compiler, walls ...Wall) (*Walls, error) {
	if err := f.usable(); err != nil {
		return nil, err
	}
	if err := f.checkWalls(walls); err != nil {
		return nil, err
	}
	made := &Walls{field: f, launches: make([][]*kernels.Copies, len(f.Parts))}
	for rank, d := range f.Placement.Devices {
		copier, err := c.NewBoxCopier(d)
		if err == nil {
			err = made.prepare(rank, copier, walls)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("halo: walls of field %q, subdomain %d: %w", f.Spec.Name, rank, err), made.Close())
		}
	}
	return made, nil
}

// prepare makes the launches of one subdomain ready: one an axis, so that each
// finds the ghosts of the axes before it in place.
func (w *Walls) prepare(rank int, copier *kernels.BoxCopier, walls []Wall) error {
	for axis := range w.field.Cut.Grid.Dims {
		var copies []kernels.Copy
		for _, wall := range walls {
			if wall.Side.Axis() != axis || !w.field.atWall(rank, wall.Side) {
				continue
			}
			more, err := w.copies(rank, copier, wall)
			if err != nil {
				return err
			}
			copies = append(copies, more...)
		}
		if len(copies) == 0 {
			continue
		}
		k, err := copier.Copies("walls", copies...)
		if err != nil {
			return err
		}
		w.resources.Add(k)
		w.launches[rank] = append(w.launches[rank], k)
	}
	return nil
}

// copies returns the copies that set one wall of a subdomain, in all its arrays.
func (w *Walls) copies(rank int, copier *kernels.BoxCopier, wall Wall) (all []kernels.Copy, err error) {
	count, _ := w.field.Spec.arrays()
	for c := range count {
		a := w.field.Array(rank, c)
		ghost := slab(a.Layout, wall.Side)
		if ghost.Empty() {
			continue
		}
		if wall.Kind != Dirichlet {
			all = append(all, layers(a, ghost, wall)...)
			continue
		}
		element, err := w.element(wall, c)
		if err != nil {
			return nil, err
		}
		row, err := copier.NewRow(element, ghost.Size()[0])
		if err != nil {
			return nil, err
		}
		w.resources.Add(row)
		all = append(all, kernels.Repeat(a, ghost, row.All()))
	}
	return all, nil
}

// slab returns the ghosts at a side of an array with those of all other axes beyond
// them, edges and corners.
func slab(l domain.Layout, side domain.Direction) domain.Box {
	full := l.Owned.Grow(l.Width)
	ghost := domain.GhostBox(l.Owned, side, l.Width)
	a := side.Axis()
	full.Lo[a], full.Hi[a] = ghost.Lo[a], ghost.Hi[a]
	return full
}

// layers returns the copies of owned layers into the layers of a slab of ghosts.
func layers(a kernels.Array, ghost domain.Box, wall Wall) (all []kernels.Copy) {
	axis, step := wall.Side.Axis(), -1
	first := a.Layout.Owned.Lo[axis] // the owned layer at the wall
	if wall.Side.Positive() {
		step, first = 1, a.Layout.Owned.Hi[axis]-1
	}
	for n := range ghost.Size()[axis] {
		to, from := ghost, ghost
		to.Lo[axis] = first + step*(n+1)
		from.Lo[axis] = first - step*wall.source(n)
		to.Hi[axis], from.Hi[axis] = to.Lo[axis]+1, from.Lo[axis]+1
		all = append(all, kernels.Copy{Dst: a.In(to), Src: a.In(from), Size: to.Size(), ElementSize: a.Layout.ElementSize})
	}
	return all
}

// element returns what a Dirichlet wall gives one point of an array: the value of
// the struct-of-arrays component, or those of all components that lie together.
func (w *Walls) element(wall Wall, component int) ([]byte, error) {
	s := w.field.Spec
	var values [][]byte
	for _, v := range wall.Values {
		b, err := s.Element.encode(v)
		if err != nil {
			return nil, err
		}
		values = append(values, b)
	}
	switch {
	case s.SoA && len(values) > 1:
		return values[component], nil
	case s.SoA || len(values) > 1:
		return bytes.Join(values, nil), nil
	}
	return bytes.Repeat(values[0], max(1, s.Components)), nil
}

// Queue queues the walls of all subdomains after what was queued before on the
// streams: one for every subdomain, by rank, of its device.
func (w *Walls) Queue(at []*streams.Stream) error {
	if err := w.field.Placement.suits(at); err != nil {
		return err
	}
	for rank, s := range at {
		if err := w.QueueOn(rank, s); err != nil {
			return err
		}
	}
	return nil
}

// QueueOn queues the walls of one subdomain on a stream of its device.
func (w *Walls) QueueOn(rank int, s *streams.Stream) error {
	if w.closed {
		return fmt.Errorf("halo: the walls of field %q are closed", w.field.Spec.Name)
	}
	for _, k := range w.launches[rank] {
		if err := s.Launch(k.Kernel); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what is held. Nothing queued may still use it. Closing twice is no
// error.
func (w *Walls) Close() error {
	w.closed = true
	return w.resources.Close()
}
