package boundary

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

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

// addReflection sets the second layer behind a Dirichlet face by odd reflection, but for what
// lies behind Dirichlet faces of later axes too: these count there.
func (r *refresher) addReflection(c *kernels.Compiler, side domain.Direction, dirichlet []domain.Direction) (err error) {
	if r.reflector == nil {
		if r.reflector, err = pack.NewReflector(c, r.ghosts.field.Placement.Devices[r.rank], kernels.Real(r.ghosts.field.Spec.Element)); err != nil {
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
func (r *refresher) add(ghosts domain.Box, side domain.Direction, launch func(domain.Box, domain.Direction) (*streams.Kernel, error)) error {
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
			beside := r.layer(side, n).Intersect(domain.GhostBox(r.ghosts.swept(r.rank, r.array.Layout), side, r.array.Layout.Width))
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
	from := ghosts
	if side.Positive() {
		from.Lo[a] = l.Owned.Hi[a] - 1 - r.ghosts.faces.At(side).source(ghosts.Lo[a]-l.Owned.Hi[a])
	} else {
		from.Lo[a] = l.Owned.Lo[a] + r.ghosts.faces.At(side).source(l.Owned.Lo[a]-1-ghosts.Lo[a])
	}
	from.Hi[a] = from.Lo[a] + 1
	return pack.Copy{Dst: pack.In(r.array, ghosts), Src: pack.In(r.array, from), Size: ghosts.Size(), ElementSize: l.ElementSize}
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
