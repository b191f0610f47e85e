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

// New prepares the ghosts of a field. A Neumann face needs as many owned layers as there are ghosts, and the
// elements must be able to represent the values of Dirichlet faces. Close frees the ghosts.
func New(c *kernels.Compiler, f *halo.Field, faces Faces) (*Ghosts, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	return NewWithReach(c, f, faces, reachOf(f))
}

// NewWithReach is New for a field whose neighbor ghosts are swept too (several steps between two exchanges),
// with ghosts outside of faces set only up to the reach of a step. They depend on the points next to them,
// including those of neighbors. Such a field has no Custom faces.
func NewWithReach(c *kernels.Compiler, f *halo.Field, faces Faces, reach Reach) (*Ghosts, error) {
	release, err := f.KeepOpen()
	if err != nil {
		return nil, err
	}
	defer release()
	g := &Ghosts{field: f, faces: faces, reach: reach}
	for _, side := range g.sides(nil) {
		c := faces.At(side)
		if err := c.check(f, side, reach); err != nil {
			return nil, err
		}
		if c.moves() && reach.Connectivity > halo.Faces && !faces.mirrorAround(side, f.Cut.Grid) {
			return nil, fmt.Errorf("boundary: face %v of field %q: values that change with time: stencils must lie "+
				"along the axes where a face keeps values of ghosts, and this one reads ghosts in edges",
				side, f.Spec.Name)
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

// prepare prepares the launches of one subdomain.
func (g *Ghosts) prepare(rank int, c *kernels.Compiler) error {
	s := &subdomain{given: map[domain.Direction][]kernels.Array{}}
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
	if err := g.addSteady(s, rank); err != nil {
		return err
	}
	return g.addRefresh(s, rank, mover, c)
}

// addFixed adds the Dirichlet faces with constant values: one launch per axis, so that in edges the face of
// the last axis applies.
func (g *Ghosts) addFixed(s *subdomain, rank int, mover *pack.BoxCopier) error {
	fixed := func(c *Condition) bool { return c.sets() && len(c.Values) > 0 }
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

// element returns the Values of a face for one point of an array: the value of its component, or those of all
// components if they are adjacent.
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

// addMoving prepares the faces with profiles.
func (g *Ghosts) addMoving(s *subdomain, rank int, mover *pack.BoxCopier) error {
	for _, side := range g.sidesOf(rank, (*Condition).moves) {
		for component := range g.arrays() {
			m, err := g.newMoving(s, rank, g.field.Array(rank, component), side, mover)
			if err != nil {
				return err
			}
			s.moves = append(s.moves, m)
		}
	}
	return nil
}

// newFace returns a face whose values profiles make.
func (g *Ghosts) newFace(rank int, a kernels.Array, side domain.Direction) (*movingFace, error) {
	m := &movingFace{
		what: fmt.Sprintf("Condition.Profile at face %v of field", side), field: g.field.Spec.Name,
		condition: g.faces.At(side), ghosts: g.firstLayer(rank, a.Layout, side), grid: g.field.Cut.Grid,
		single: g.field.Spec.Element == halo.Float32,
	}
	if m.read = m.ghosts; m.condition.Affine() {
		m.ghosts = g.givenBox(rank, a.Layout, side)
		if g.reach.Connectivity > halo.Faces {
			m.read = m.ghosts
		}
	}
	if m.condition.Transfers != nil {
		m.layers = layersAt(g.reach.Width, side)
	}
	return m, m.ask()
}

func (g *Ghosts) newMoving(
	s *subdomain, rank int, a kernels.Array, side domain.Direction, mover *pack.BoxCopier,
) (*movingFace, error) {
	m, err := g.newFace(rank, a, side)
	if err != nil {
		return nil, err
	}
	device, bytes := g.field.Placement.Devices[rank], m.bytes()
	if g.faces.At(side).Affine() {
		given, err := device.Alloc(bytes)
		if err != nil {
			return nil, err
		}
		g.resources.Add(given)
		for i := range m.slots {
			m.slots[i].device = given
		}
		if err := s.give(side, given, m.ghosts, a.Layout.ElementSize); err != nil {
			return nil, err
		}
	}
	for i := range m.slots {
		v := &m.slots[i]
		var err error
		if v.host, err = device.AllocPinned(bytes); err != nil {
			return nil, err
		}
		g.resources.Add(v.host)
		if v.used, err = device.NewEvent(); err != nil {
			return nil, err
		}
		g.resources.Add(v.used)
		if v.device != nil {
			continue
		}
		if v.device, err = device.Alloc(bytes); err != nil {
			return nil, err
		}
		g.resources.Add(v.device)
		if v.unpack, err = mover.Copies("boundary", pack.Unpack(a, m.ghosts, v.device.All())); err != nil {
			return nil, err
		}
		g.resources.Add(v.unpack)
	}
	return m, nil
}

// addSteady makes the constant values of affine faces.
func (g *Ghosts) addSteady(s *subdomain, rank int) error {
	for _, side := range g.sidesOf(rank, func(c *Condition) bool { return c.Affine() && !c.moves() }) {
		for component := range g.arrays() {
			a, c := g.field.Array(rank, component), g.faces.At(side)
			box := g.givenBox(rank, a.Layout, side)
			var values []byte
			if c.Profile == nil {
				element, err := g.element(c, component)
				if err != nil {
					return err
				}
				values = bytes.Repeat(element, int(box.Points()))
			} else {
				m, err := g.newFace(rank, a, side)
				if err != nil {
					return err
				}
				values = make([]byte, m.bytes())
				if err := m.evaluateInto(values, 0); err != nil {
					return err
				}
				if err := m.checkFinite(values); err != nil {
					return err
				}
			}
			given, err := streams.Upload(g.field.Placement.Devices[rank], values)
			if err != nil {
				return err
			}
			g.resources.Add(given)
			if err := s.give(side, given, box, a.Layout.ElementSize); err != nil {
				return err
			}
		}
	}
	return nil
}

// give adds the values for the ghosts of one array behind a face: those of a box, x fastest, one plane after another.
func (s *subdomain) give(side domain.Direction, m *streams.Memory, box domain.Box, bytes int) error {
	size := box.Size()
	l, err := domain.NewStridedLayout(box, domain.Radius{}, bytes, 0, int64(size[0]), int64(size[0])*int64(size[1]))
	if err != nil {
		return err
	}
	s.given[side] = append(s.given[side], kernels.Array{Data: m.All(), Layout: l})
	return nil
}

// affines returns the affine rules of the n-th layer of ghosts of an array at a side, none for copies. For Affine.By,
// from is the index across the face of the source, and moved the distance of the value along the face.
func (g *Ghosts) affines(
	rank, component int, side domain.Direction, n, from int, moved domain.Vec,
) (all []kernels.Affine) {
	given := g.byRank[rank].given[side]
	if given == nil {
		return nil
	}
	one := kernels.Affine{Given: given[component], By: moved, Weight: 1}
	if face := g.faces.At(side); face.Transfers == nil {
		one.Factor, one.Weight = face.factors(n)
	} else { // a plane of b*g and one of a, for each layer
		one.FactorAt = one.Given.Layout.Owned.Points()
		skipped := int64(2*n) * one.FactorAt * int64(one.Given.Layout.ElementSize)
		one.Given.Data.Offset, one.Given.Data.Length = one.Given.Data.Offset+skipped, one.Given.Data.Length-skipped
	}
	one.By[side.Axis()] = one.Given.Layout.Owned.Lo[side.Axis()] - from
	return []kernels.Affine{one}
}

// givenBox returns the ghosts next to a face for which there are values: also those in edges, where these are set.
func (g *Ghosts) givenBox(rank int, l domain.Layout, side domain.Direction) domain.Box {
	box := g.firstLayer(rank, l, side)
	if g.edgesAreRead() {
		full, a := g.extent(rank, l), side.Axis()
		full.Lo[a], full.Hi[a] = box.Lo[a], box.Hi[a]
		box = full
	}
	return box
}

// firstLayer returns the ghosts next to a face, of owned points and of ghosts of neighbors that are swept.
func (g *Ghosts) firstLayer(rank int, l domain.Layout, side domain.Direction) domain.Box {
	owned := l.Owned
	if g.edgesAreRead() {
		owned = g.swept(rank, l)
	}
	return domain.GhostBox(owned, side, domain.UniformRadius(g.field.Cut.Grid.Dims, 1))
}

// refresher makes the launches that set ghosts of one subdomain from other points.
type refresher struct {
	ghosts    *Ghosts
	to        *subdomain
	rank      int
	component int
	array     kernels.Array
	inner     domain.Box // owned points and all ghosts outside of faces, without ghosts of neighbors
	mover     *pack.BoxCopier
	reflector *pack.Reflector // nil if all ghosts are copies
}

// strip is ghosts in one layer outside of a face.
type strip struct {
	ghosts domain.Box
	side   domain.Direction
}

// addRefresh prepares the launches: Dirichlet faces by axis, since their order matters in edges, then the
// others by axis. Ghosts that do not depend on neighbors are in own, the rest in edges.
func (g *Ghosts) addRefresh(s *subdomain, rank int, mover *pack.BoxCopier, c *kernels.Compiler) error {
	odd := slices.DeleteFunc(g.sidesOf(rank, (*Condition).odd),
		func(side domain.Direction) bool { return layersAt(g.reach.Width, side) < 2 })
	dirichlet := g.sidesOf(rank, (*Condition).sets)
	mirrors := g.sidesOf(rank, (*Condition).mirrors)
	var reflector *pack.Reflector
	if len(odd)+len(s.given) > 0 {
		var err error
		reflector, err = pack.NewReflector(c, g.field.Placement.Devices[rank], g.field.Spec.Element)
		if err != nil {
			return err
		}
	}
	for component := range g.arrays() {
		r := refresher{
			ghosts: g, to: s, rank: rank, component: component, array: g.field.Array(rank, component), mover: mover,
			reflector: reflector,
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

// addReflection sets the second layer outside a Dirichlet face by odd reflection, except in edges with
// Dirichlet faces of later axes, which take precedence.
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

// add makes the launches for a strip: one for the ghosts that do not depend on neighbors, and one for the
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

// edgesAreRead reports whether the field has neighbors in edges.
func (g *Ghosts) edgesAreRead() bool { return g.field.Spec.Connectivity > halo.Faces }

// addMirrors sets the ghosts of faces that depend on owned points: one launch per layer with its edges or, if
// no ghosts in edges are read, one launch for the copies of all sides.
func (r *refresher) addMirrors(sides []domain.Direction) error {
	if r.ghosts.edgesAreRead() && r.ghosts.reach.Connectivity == halo.Faces {
		return r.addMirrorsOnly(sides)
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

// addMirrorsOnly does so for a field that steps read outside of one face at a time, and whose neighbor ghosts
// are swept: one launch for copies next to owned points, and one for the other copies.
func (r *refresher) addMirrorsOnly(sides []domain.Direction) error {
	var own, rest, remote []strip
	for _, side := range sides {
		for n := range layersAt(r.ghosts.reach.Width, side) {
			layer := r.layer(side, n).
				Intersect(domain.GhostBox(r.ghosts.swept(r.rank, r.array.Layout), side, r.array.Layout.Width))
			face := layer.Intersect(domain.GhostBox(r.array.Layout.Owned, side, r.array.Layout.Width))
			own = append(own, strip{face, side})
			for _, box := range around(layer, face) {
				rest = append(rest, strip{box, side})
				for _, part := range r.ghosts.beyondRemote(r.rank, r.array.Layout, box) {
					remote = append(remote, strip{part, side})
				}
			}
		}
	}
	return errors.Join(r.set(&r.to.own, own...), r.set(&r.to.remote, remote...), r.set(&r.to.edges, rest...))
}

// set makes the launches that set ghosts from other points: one for each strip whose ghosts are not copies, and one for
// all copies.
func (r *refresher) set(to *[]*streams.Kernel, all ...strip) error {
	var copies []pack.Copy
	for _, s := range all {
		a, l, face := s.side.Axis(), r.array.Layout, r.ghosts.faces.At(s.side)
		n := max(l.Owned.Lo[a]-1-s.ghosts.Lo[a], s.ghosts.Lo[a]-l.Owned.Hi[a])
		layer, _ := face.Source(n)
		var in domain.Vec
		in[a] = -s.side[a] * (n + 1 + layer)
		var k *streams.Kernel
		var err error
		switch affines := r.ghosts.affines(r.rank, r.component, s.side, n, s.ghosts.Lo[a], domain.Vec{}); {
		case face.sets():
			k, err = r.reflector.Reflect(r.array, s.ghosts, s.side)
		case len(affines) > 0:
			given := affines[0].Given.Layout.Owned
			for other := range given.Lo { // ghosts beyond are in edges, which are not read
				if other != a {
					s.ghosts.Lo[other] = max(s.ghosts.Lo[other], given.Lo[other])
					s.ghosts.Hi[other] = min(s.ghosts.Hi[other], given.Hi[other])
				}
			}
			if s.ghosts.Empty() {
				continue
			}
			k, err = r.reflector.Affine(r.array, s.ghosts, in, affines[0])
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

// addCustom adds the caller's kernel of a face, which is not requested in a dry run.
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

// kernel requests the kernel of a face from the condition.
func (r *refresher) kernel(at Slab) (k *streams.Kernel, err error) {
	defer streams.Caught(&err, "Condition.Kernel of field", r.ghosts.field.Spec.Name)
	return r.ghosts.faces.At(at.Side).Kernel(at)
}

// layer returns the n-th layer of ghosts at a side, from 0, including edges and corners.
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

// around returns boxes that cover b without the box inside it.
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
