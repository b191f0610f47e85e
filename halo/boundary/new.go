package boundary

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
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

// NewWithin is New for a field whose ghosts of neighbours are swept too, which reaches no farther behind faces than
// steps do. Ghosts behind faces follow the points beside them, those of neighbours too, and none lie deeper than the
// reach. Such a field has no Custom faces.
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
			return nil, errors.Join(fmt.Errorf("boundary: field %q, subdomain %d: %w", f.Spec.Name, rank, err),
				g.Close())
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

func (g *Ghosts) newMoving(
	rank int, a kernels.Array, side domain.Direction, mover *pack.BoxCopier,
) (*movingFace, error) {
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

// firstLayer returns the ghosts next to a face, beside owned points, and beside ghosts of neighbours where these are
// swept.
func (g *Ghosts) firstLayer(rank int, l domain.Layout, side domain.Direction) domain.Box {
	beside := l.Owned
	if g.edgesAreRead() {
		beside = g.swept(rank, l)
	}
	return domain.GhostBox(beside, side, domain.UniformRadius(g.field.Cut.Grid.Dims, 1))
}

// refresher makes the launches that set ghosts from other points of one subdomain.
type refresher struct {
	ghosts    *Ghosts
	to        *subdomain
	rank      int
	array     kernels.Array
	inner     domain.Box // owned points and all ghosts behind faces, but none from neighbours
	mover     *pack.BoxCopier
	reflector *pack.Reflector
}

// addRefresh makes the launches ready: Dirichlet faces by axis, which matter in edges with each
// other by their order, then the others by axis. What needs no ghost of a neighbour is own, the
// rest edges.
func (g *Ghosts) addRefresh(s *subdomain, rank int, mover *pack.BoxCopier, c *kernels.Compiler) error {
	odd := g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Dirichlet && c.Odd })
	dirichlet := g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Dirichlet })
	for component := range g.arrays() {
		r := refresher{ghosts: g, to: s, rank: rank, array: g.field.Array(rank, component), mover: mover}
		r.inner = r.array.Layout.Owned
		for _, side := range domain.Faces(g.field.Cut.Grid.Dims) {
			if !inside(g.field.Cut, rank, side) {
				r.inner = grown(r.inner, side, g.reach.Width)
			}
		}
		for _, side := range odd {
			if layersAt(g.reach.Width, side) < 2 {
				continue
			}
			if err := r.addReflection(c, side, dirichlet); err != nil {
				return err
			}
		}
		if err := r.addMirrors(g.sidesOf(rank, (*Condition).mirrors)); err != nil {
			return err
		}
		for _, side := range g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Custom }) {
			if err := r.addCustom(side, component); err != nil {
				return err
			}
		}
	}
	return nil
}

// addReflection sets the second layer behind a Dirichlet face by odd reflection, except for what
// lies behind Dirichlet faces of later axes too: these count there.
func (r *refresher) addReflection(
	c *kernels.Compiler, side domain.Direction, dirichlet []domain.Direction,
) (err error) {
	if r.reflector == nil {
		device, real := r.ghosts.field.Placement.Devices[r.rank], kernels.Real(r.ghosts.field.Spec.Element)
		if r.reflector, err = pack.NewReflector(c, device, real); err != nil {
			return err
		}
	}
	l := r.array.Layout
	box := r.layer(side, 1)
	for _, other := range dirichlet {
		switch a := other.Axis(); {
		case a <= side.Axis():
		case other.Positive():
			box.Hi[a] = l.Owned.Hi[a]
		default:
			box.Lo[a] = l.Owned.Lo[a]
		}
	}
	return r.add(box, side, r.reflect)
}

// add makes the launches for some ghosts behind a face: for what needs no neighbour, and for the
// rest.
func (r *refresher) add(
	ghosts domain.Box, side domain.Direction, launch func(domain.Box, domain.Direction) (*streams.Kernel, error),
) error {
	own := ghosts.Intersect(r.inner)
	for i, box := range append([]domain.Box{own}, around(ghosts, own)...) {
		k, err := launch(box, side)
		if err != nil {
			return err
		}
		if i > 0 && r.ghosts.edgesAreRead() {
			for _, part := range r.ghosts.beyondRemote(r.rank, r.array.Layout, box) {
				k, err := launch(part, side)
				if err != nil {
					return err
				}
				r.to.remote = append(r.to.remote, k)
			}
		}
		switch {
		case i == 0:
			r.to.own = append(r.to.own, k)
		case r.ghosts.edgesAreRead():
			r.to.edges = append(r.to.edges, k)
		default:
			r.to.unread = append(r.to.unread, k)
		}
	}
	return nil
}

// edgesAreRead reports whether the field's neighbours in edges matter.
func (g *Ghosts) edgesAreRead() bool { return g.field.Spec.Connectivity > halo.Faces }

// reflect makes an odd reflection.
func (r *refresher) reflect(ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	k, err := r.reflector.Reflect(r.array, ghosts, side)
	if err == nil {
		r.ghosts.resources.Add(k)
	}
	return k, err
}

// addMirrors makes the copies of Neumann and repeating faces: a launch for each layer with its
// edges, or where no ghosts in edges are read one for the faces of all sides.
func (r *refresher) addMirrors(sides []domain.Direction) error {
	if r.ghosts.edgesAreRead() && r.ghosts.reach.Connectivity == halo.Faces {
		return r.addMirrorsBeside(sides)
	}
	var faces []pack.Copy
	for _, side := range sides {
		for n := range layersAt(r.ghosts.reach.Width, side) {
			ghosts := r.layer(side, n)
			if r.ghosts.edgesAreRead() {
				if err := r.add(ghosts, side, r.mirror); err != nil {
					return err
				}
				continue
			}
			face := ghosts.Intersect(domain.GhostBox(r.array.Layout.Owned, side, r.array.Layout.Width))
			faces = append(faces, r.mirrored(face, side))
			k, err := r.mirror(ghosts, side)
			if err != nil {
				return err
			}
			r.to.unread = append(r.to.unread, k)
		}
	}
	return r.ghosts.addCopies(&r.to.own, r.mover, faces)
}

// addMirrorsBeside makes the copies of a field that steps read behind one face at a time, beside ghosts of neighbours
// that are swept: one launch for what lies beside owned points, and one for the rest.
func (r *refresher) addMirrorsBeside(sides []domain.Direction) error {
	var own, rest, remote []pack.Copy
	for _, side := range sides {
		for n := range layersAt(r.ghosts.reach.Width, side) {
			beside := r.layer(side, n).
				Intersect(domain.GhostBox(r.ghosts.swept(r.rank, r.array.Layout), side, r.array.Layout.Width))
			face := beside.Intersect(domain.GhostBox(r.array.Layout.Owned, side, r.array.Layout.Width))
			own = append(own, r.mirrored(face, side))
			for _, box := range around(beside, face) {
				rest = append(rest, r.mirrored(box, side))
				for _, part := range r.ghosts.beyondRemote(r.rank, r.array.Layout, box) {
					remote = append(remote, r.mirrored(part, side))
				}
			}
		}
	}
	if err := r.ghosts.addCopies(&r.to.own, r.mover, own); err != nil {
		return err
	}
	if err := r.ghosts.addCopies(&r.to.remote, r.mover, remote); err != nil {
		return err
	}
	return r.ghosts.addCopies(&r.to.edges, r.mover, rest)
}

// mirror makes the launch for one layer.
func (r *refresher) mirror(ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	c, err := r.mover.Copies("boundary", r.mirrored(ghosts, side))
	if err != nil {
		return nil, err
	}
	r.ghosts.resources.Add(c)
	return c.Kernel, nil
}

// mirrored is the copy of the owned points that a layer of ghosts gets its values from.
func (r *refresher) mirrored(ghosts domain.Box, side domain.Direction) pack.Copy {
	a, l := side.Axis(), r.array.Layout
	source := rules[r.ghosts.faces.At(side).Kind].source
	from := ghosts
	if side.Positive() {
		from.Lo[a] = l.Owned.Hi[a] - 1 - source(ghosts.Lo[a]-l.Owned.Hi[a])
	} else {
		from.Lo[a] = l.Owned.Lo[a] + source(l.Owned.Lo[a]-1-ghosts.Lo[a])
	}
	from.Hi[a] = from.Lo[a] + 1
	return pack.Copy{
		Dst:         pack.In(r.array, ghosts),
		Src:         pack.In(r.array, from),
		Size:        ghosts.Size(),
		ElementSize: l.ElementSize,
	}
}

// addCustom adds the caller's kernel of a face, which is not asked for in a dry run.
func (r *refresher) addCustom(side domain.Direction, component int) error {
	at := Slab{
		Rank: r.rank, Device: r.ghosts.field.Placement.Devices[r.rank], Side: side, Component: component,
		Array: r.array, Ghosts: r.ghosts.slab(r.rank, r.array.Layout, side),
	}
	if at.Ghosts.Empty() || at.Device.IsDry() {
		return nil
	}
	k, err := r.kernel(at)
	if err != nil {
		return fmt.Errorf("the kernel of face %v: %w", side, err)
	}
	if k != nil {
		r.ghosts.resources.Add(k)
		r.to.own = append(r.to.own, k)
	}
	return nil
}

// kernel asks the condition for the kernel of a face.
func (r *refresher) kernel(at Slab) (k *streams.Kernel, err error) {
	defer streams.Caught(&err, "Condition.Kernel of field", r.ghosts.field.Spec.Name)
	return r.ghosts.faces.At(at.Side).Kernel(at)
}

// layer returns the n-th layer of ghosts at a side, from 0, with what lies beside it in edges
// and corners.
func (r *refresher) layer(side domain.Direction, n int) domain.Box {
	l := r.array.Layout
	b, a := r.ghosts.extent(r.rank, l), side.Axis()
	b.Lo[a] = l.Owned.Lo[a] - 1 - n
	if side.Positive() {
		b.Lo[a] = l.Owned.Hi[a] + n
	}
	b.Hi[a] = b.Lo[a] + 1
	return b
}

// around returns boxes that hold what of a box is not in another, which lies in it.
func around(b, without domain.Box) (all []domain.Box) {
	for a := range b.Lo {
		low, high := b, b
		low.Hi[a], high.Lo[a] = without.Lo[a], without.Hi[a]
		for _, piece := range []domain.Box{low, high} {
			if !piece.Empty() {
				all = append(all, piece)
			}
		}
		b.Lo[a], b.Hi[a] = without.Lo[a], without.Hi[a]
	}
	return all
}
