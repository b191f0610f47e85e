package boundary

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
)

// New makes the ghosts of a field ready. A Neumann face needs as many owned layers as there are
// ghosts, and the values of a Dirichlet face must be some that the elements can hold. Close
// frees what it holds.
func New(c *kernels.Compiler, f *halo.Field, faces Faces) (*Ghosts, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	return NewWithin(c, f, faces, reachOf(f))
}

// NewWithin is New for a field whose ghosts of neighbours are swept too, which reaches no farther behind faces than steps
// do. Ghosts behind faces follow the points beside them, those of neighbours too, and none lie deeper than the reach. Such
// a field has no Custom faces.
func NewWithin(c *kernels.Compiler, f *halo.Field, faces Faces, reach Reach) (*Ghosts, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	g := &Ghosts{field: f, faces: faces, reach: reach}
	for _, side := range g.sides(nil) {
		if err := faces.At(side).check(f, side, reach); err != nil {
			return nil, err
		}
	}
	for rank := range f.Parts {
		if !f.Placement.IsLocal(rank) {
			g.byRank = append(g.byRank, nil)
			continue
		}
		if err := g.prepare(rank, c); err != nil {
			return nil, errors.Join(fmt.Errorf("boundary: field %q, subdomain %d: %w", f.Spec.Name, rank, err), g.Close())
		}
	}
	return g, nil
}

// prepare makes the launches of one subdomain ready.
func (g *Ghosts) prepare(rank int, c *kernels.Compiler) error {
	s := &subdomain{}
	g.byRank = append(g.byRank, s)
	mover, err := pack.NewBoxCopier(c, g.field.Placement.Devices[rank])
	if err != nil {
		return err
	}
	if err := g.addFixed(s, rank, mover); err != nil {
		return err
	}
	if err := g.addMoving(s, rank, mover); err != nil {
		return err
	}
	return g.addRefresh(s, rank, mover, c)
}

// addFixed adds the Dirichlet faces with values: one launch an axis, so that of several faces
// that of the last axis counts in edges.
func (g *Ghosts) addFixed(s *subdomain, rank int, mover *pack.BoxCopier) error {
	fixed := func(c *Condition) bool { return c.Kind == Dirichlet && len(c.Values) > 0 && c.Profile == nil }
	for axis := range g.field.Cut.Grid.Dims {
		var copies []pack.Copy
		for _, side := range g.sidesOf(rank, fixed) {
			if side.Axis() != axis {
				continue
			}
			for component := range g.arrays() {
				a := g.field.Array(rank, component)
				ghosts := g.slab(rank, a.Layout, side)
				if ghosts.Empty() {
					continue
				}
				element, err := g.element(g.faces.At(side), component)
				if err != nil {
					return err
				}
				row, err := mover.NewRow(element, ghosts.Size()[0])
				if err != nil {
					return err
				}
				g.resources.Add(row)
				copies = append(copies, pack.Repeat(a, ghosts, row.All()))
			}
		}
		if err := g.addCopies(&s.fixed, mover, copies); err != nil {
			return err
		}
	}
	return nil
}

// element returns what a Dirichlet face gives one point of an array: the value of the
// component that is an array of its own, or those of all components that lie together.
func (g *Ghosts) element(c *Condition, component int) ([]byte, error) {
	s := g.field.Spec
	var values [][]byte
	for _, v := range c.Values {
		b, err := s.Element.Encode(v)
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

// addMoving makes the faces with profiles ready.
func (g *Ghosts) addMoving(s *subdomain, rank int, mover *pack.BoxCopier) error {
	for _, side := range g.sidesOf(rank, (*Condition).moves) {
		for component := range g.arrays() {
			m, err := g.newMoving(rank, g.field.Array(rank, component), side, mover)
			if err != nil {
				return err
			}
			s.moves = append(s.moves, m)
		}
	}
	return nil
}

func (g *Ghosts) newMoving(rank int, a kernels.Array, side domain.Direction, mover *pack.BoxCopier) (*movingFace, error) {
	ghosts := g.firstLayer(rank, a.Layout, side)
	m := &movingFace{
		what: fmt.Sprintf("Condition.Profile at face %v of field", side), field: g.field.Spec.Name, ghosts: ghosts,
		single: g.field.Spec.Element == halo.Float32, grid: g.field.Cut.Grid,
	}
	if err := m.ask(g.faces.At(side)); err != nil {
		return nil, err
	}
	device, bytes := g.field.Placement.Devices[rank], ghosts.Points()*int64(a.Layout.ElementSize)
	for i := range m.slots {
		v := &m.slots[i]
		var err error
		if v.host, err = device.AllocPinned(bytes); err != nil {
			return nil, err
		}
		g.resources.Add(v.host)
		if v.device, err = device.Alloc(bytes); err != nil {
			return nil, err
		}
		g.resources.Add(v.device)
		if v.used, err = device.NewEvent(); err != nil {
			return nil, err
		}
		g.resources.Add(v.used)
		if v.unpack, err = mover.Copies("boundary", pack.Unpack(a, ghosts, v.device.All())); err != nil {
			return nil, err
		}
		g.resources.Add(v.unpack)
	}
	return m, nil
}

// firstLayer returns the ghosts next to a face, beside owned points, and beside ghosts of neighbours where these are swept.
func (g *Ghosts) firstLayer(rank int, l domain.Layout, side domain.Direction) domain.Box {
	beside := l.Owned
	if g.edgesAreRead() {
		beside = g.swept(rank, l)
	}
	return domain.GhostBox(beside, side, domain.UniformRadius(g.field.Cut.Grid.Dims, 1))
}
