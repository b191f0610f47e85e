package boundary

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

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
	release, err := f.KeepOpen()
	if err != nil {
		return nil, err
	}
	defer release()
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
	reflector *pack.Reflector // nil where no ghosts are reflected or scaled
}

// strip is ghosts in one layer behind a face.
type strip struct {
	ghosts domain.Box
	side   domain.Direction
}

// addRefresh makes the launches ready: Dirichlet faces by axis, which matter in edges with each
// other by their order, then the others by axis. What needs no ghost of a neighbour is own, the
// rest edges.
func (g *Ghosts) addRefresh(s *subdomain, rank int, mover *pack.BoxCopier, c *kernels.Compiler) error {
	odd := slices.DeleteFunc(g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Dirichlet && c.Odd }),
		func(side domain.Direction) bool { return layersAt(g.reach.Width, side) < 2 })
	scaled := g.sidesOf(rank, func(c *Condition) bool { return c.scales(0) != nil })
	dirichlet := g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Dirichlet })
	mirrors := g.sidesOf(rank, (*Condition).mirrors)
	var reflector *pack.Reflector
	if len(odd)+len(scaled) > 0 {
		var err error
		reflector, err = pack.NewReflector(c, g.field.Placement.Devices[rank], kernels.Real(g.field.Spec.Element))
		if err != nil {
			return err
		}
	}
	for component := range g.arrays() {
		r := refresher{
			ghosts: g, to: s, rank: rank, array: g.field.Array(rank, component), mover: mover, reflector: reflector,
		}
		r.inner = r.array.Layout.Owned
		for _, side := range domain.Faces(g.field.Cut.Grid.Dims) {
			if !inside(g.field.Cut, rank, side) {
				r.inner = grown(r.inner, side, g.reach.Width)
			}
		}
		for _, side := range odd {
			if err := r.addReflection(side, dirichlet); err != nil {
				return err
			}
		}
		if err := r.addMirrors(mirrors); err != nil {
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
func (r *refresher) addReflection(side domain.Direction, dirichlet []domain.Direction) error {
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
	return r.add(strip{box, side})
}

// add makes the launches for some ghosts behind a face: for what needs no neighbour, and for the
// rest.
func (r *refresher) add(all strip) error {
	own := all.ghosts.Intersect(r.inner)
	if err := r.set(&r.to.own, strip{own, all.side}); err != nil {
		return err
	}
	for _, box := range around(all.ghosts, own) {
		to := &r.to.unread
		if r.ghosts.edgesAreRead() {
			to = &r.to.edges
			for _, part := range r.ghosts.beyondRemote(r.rank, r.array.Layout, box) {
				if err := r.set(&r.to.remote, strip{part, all.side}); err != nil {
					return err
				}
			}
		}
		if err := r.set(to, strip{box, all.side}); err != nil {
			return err
		}
	}
	return nil
}

// edgesAreRead reports whether the field's neighbours in edges matter.
func (g *Ghosts) edgesAreRead() bool { return g.field.Spec.Connectivity > halo.Faces }

// addMirrors makes the ghosts of faces that are made from owned points: a launch for each layer with its
// edges, or where no ghosts in edges are read one for the copies of all sides.
func (r *refresher) addMirrors(sides []domain.Direction) error {
	if r.ghosts.edgesAreRead() && r.ghosts.reach.Connectivity == halo.Faces {
		return r.addMirrorsBeside(sides)
	}
	var faces []strip
	for _, side := range sides {
		for n := range layersAt(r.ghosts.reach.Width, side) {
			ghosts := r.layer(side, n)
			if r.ghosts.edgesAreRead() {
				if err := r.add(strip{ghosts, side}); err != nil {
					return err
				}
				continue
			}
			face := ghosts.Intersect(domain.GhostBox(r.array.Layout.Owned, side, r.array.Layout.Width))
			faces = append(faces, strip{face, side})
			if err := r.set(&r.to.unread, strip{ghosts, side}); err != nil {
				return err
			}
		}
	}
	return r.set(&r.to.own, faces...)
}

// addMirrorsBeside does so for a field that steps read behind one face at a time, beside ghosts of neighbours
// that are swept: one launch for copies beside owned points, and one for the other copies.
func (r *refresher) addMirrorsBeside(sides []domain.Direction) error {
	var own, rest, remote []strip
	for _, side := range sides {
		for n := range layersAt(r.ghosts.reach.Width, side) {
			beside := r.layer(side, n).
				Intersect(domain.GhostBox(r.ghosts.swept(r.rank, r.array.Layout), side, r.array.Layout.Width))
			face := beside.Intersect(domain.GhostBox(r.array.Layout.Owned, side, r.array.Layout.Width))
			own = append(own, strip{face, side})
			for _, box := range around(beside, face) {
				rest = append(rest, strip{box, side})
				for _, part := range r.ghosts.beyondRemote(r.rank, r.array.Layout, box) {
					remote = append(remote, strip{part, side})
				}
			}
		}
	}
	return errors.Join(r.set(&r.to.own, own...), r.set(&r.to.remote, remote...), r.set(&r.to.edges, rest...))
}

// set makes the launches that set ghosts from other points: one for each strip that is reflected or scaled, and one for
// all copies.
func (r *refresher) set(to *[]*streams.Kernel, all ...strip) error {
	var copies []pack.Copy
	for _, s := range all {
		a, l, face := s.side.Axis(), r.array.Layout, r.ghosts.faces.At(s.side)
		n := max(l.Owned.Lo[a]-1-s.ghosts.Lo[a], s.ghosts.Lo[a]-l.Owned.Hi[a])
		layer, _ := face.Kind.Source(n)
		var in domain.Vec
		in[a] = -s.side[a] * (n + 1 + layer)
		var k *streams.Kernel
		var err error
		switch scales := face.scales(n); {
		case face.Kind == Dirichlet:
			k, err = r.reflector.Reflect(r.array, s.ghosts, s.side)
		case len(scales) > 0:
			k, err = r.reflector.Scale(r.array, s.ghosts, in, scales[0])
		default:
			copies = append(copies, pack.Copy{
				Dst: pack.In(r.array, s.ghosts), Src: pack.In(r.array, s.ghosts.Shift(in)), Size: s.ghosts.Size(),
				ElementSize: l.ElementSize,
			})
			continue
		}
		if err != nil {
			return err
		}
		r.ghosts.resources.Add(k)
		*to = append(*to, k)
	}
	return r.ghosts.addCopies(to, r.mover, copies)
}

// addCustom adds the caller's kernel of a face, which is not asked for in a dry run.
func (r *refresher) addCustom(side domain.Direction, component int) error {
	at := Slab{
		Rank: r.rank, Device: r.ghosts.field.Placement.Devices[r.rank], Side: side, Component: component,
		Array: r.array, Ghosts: r.ghosts.slab(r.rank, r.array.Layout, side),
	}
	if at.Device.IsDry() {
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
