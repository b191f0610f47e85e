package solvers

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// ghostFill holds the kernels that fill the ghosts at physical boundaries for one field of a
// subdomain. Ghosts that never change, or that the host evaluates, are not among them.
// Kernels of own read owned points only. They are queued after the sweep of the boundary
// region and before messages are sent: a message may carry ghosts that lie between its points.
// Kernels of beside read ghosts that neighbours send, in edges and corners. They are queued
// after the messages have arrived, for stencils that read them.
type ghostFill struct {
	own, beside []*streams.Kernel
}

// newGhostFill makes the launches ready: Dirichlet walls by axis, which matter in edges with
// each other by their order, then Neumann walls by axis.
func (t *part) newGhostFill(p *Problem, pl *halo.Placement, a kernels.Array, c *kernels.Compiler) (b ghostFill, err error) {
	w := ghostFillBuilder{part: t, problem: p, array: a, inner: a.Layout.Owned}
	if w.copier, err = c.NewBoxCopier(t.device); err != nil {
		return b, err
	}
	if w.reflector, err = c.NewReflector(t.device, p.Real); err != nil {
		return b, err
	}
	for _, side := range domain.Faces(p.Grid.Dims) {
		if _, inside := pl.Neighbour(t.rank, side); !inside {
			w.inner = grown(w.inner, side, a.Layout.Width)
		}
	}
	dirichlet := p.faces(pl, t.rank, func(w Wall) bool { return w.Kind == Dirichlet })
	neumann := p.faces(pl, t.rank, isNeumann)
	for i, side := range dirichlet {
		if p.radius(side.Axis()) == 2 {
			if err := w.add(&b, secondLayer(a.Layout, side, dirichlet[i+1:]), side, w.reflect); err != nil {
				return b, err
			}
		}
	}
	if p.corners() == halo.Faces {
		b.beside = nil
		return b, w.mirrorFaces(&b, neumann)
	}
	for _, side := range neumann {
		for n := range p.radius(side.Axis()) {
			if err := w.add(&b, layer(a.Layout, side, n), side, w.mirror); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// ghostFillBuilder makes launches for walls.
type ghostFillBuilder struct {
	part      *part
	problem   *Problem
	array     kernels.Array
	inner     domain.Box // owned points and all ghosts behind walls, but none from neighbours
	copier    *kernels.BoxCopier
	reflector *kernels.Reflector
}

// add makes the launches for ghosts behind a wall: for what needs no neighbour, and for the
// rest.
func (w *ghostFillBuilder) add(b *ghostFill, ghosts domain.Box, side domain.Direction, launch func(domain.Box, domain.Direction) (*streams.Kernel, error)) error {
	own := ghosts.Intersect(w.inner)
	for i, box := range append([]domain.Box{own}, around(ghosts, own)...) {
		k, err := launch(box, side)
		if err != nil {
			return err
		}
		if i == 0 {
			b.own = append(b.own, k)
		} else {
			b.beside = append(b.beside, k)
		}
	}
	return nil
}

// reflect makes an odd reflection.
func (w *ghostFillBuilder) reflect(ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	k, err := w.reflector.Reflect(w.array, ghosts, side)
	if err == nil {
		w.part.resources.Add(k)
	}
	return k, err
}

// mirrorFaces makes one launch for all Neumann walls, for stencils that read no edges.
func (w *ghostFillBuilder) mirrorFaces(b *ghostFill, sides []domain.Direction) error {
	var copies []kernels.Copy
	for _, side := range sides {
		faces := domain.GhostBox(w.array.Layout.Owned, side, w.array.Layout.Width)
		for n := range w.problem.radius(side.Axis()) {
			c, err := w.mirrored(layer(w.array.Layout, side, n).Intersect(faces), side)
			if err != nil {
				return err
			}
			copies = append(copies, c)
		}
	}
	if len(copies) == 0 {
		return nil
	}
	k, err := w.launch(copies...)
	b.own = append(b.own, k)
	return err
}

// mirror makes the launch for one layer.
func (w *ghostFillBuilder) mirror(ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	c, err := w.mirrored(ghosts, side)
	if err != nil {
		return nil, err
	}
	return w.launch(c)
}

func (w *ghostFillBuilder) launch(copies ...kernels.Copy) (*streams.Kernel, error) {
	c, err := w.copier.Copies("mirror", copies...)
	if err != nil {
		return nil, err
	}
	w.part.resources.Add(c)
	return c.Kernel, nil
}

// mirrored is the copy of the points as far before the wall as the ghosts are behind it.
func (w *ghostFillBuilder) mirrored(ghosts domain.Box, side domain.Direction) (kernels.Copy, error) {
	a, l := side.Axis(), w.array.Layout
	if have, need := l.Owned.Size()[a], w.problem.radius(a); have < need {
		return kernels.Copy{}, fmt.Errorf("solvers: subdomain %d owns %d layers along %c and would mirror %d: use fewer parts or a smaller stencil",
			w.part.rank, have, "xyz"[a], need)
	}
	from := ghosts
	from.Lo[a] = 2*l.Owned.Lo[a] - 1 - ghosts.Lo[a]
	if side.Positive() {
		from.Lo[a] = 2*l.Owned.Hi[a] - 1 - ghosts.Lo[a]
	}
	from.Hi[a] = from.Lo[a] + 1
	return kernels.Copy{Dst: w.array.In(ghosts), Src: w.array.In(from), Size: ghosts.Size(), ElementSize: l.ElementSize}, nil
}

// layer returns the n-th layer of ghosts at a side, from 0, with what lies beside it in edges
// and corners.
func layer(l domain.Layout, side domain.Direction, n int) domain.Box {
	b, a := l.Owned.Grow(l.Width), side.Axis()
	b.Lo[a] = l.Owned.Lo[a] - 1 - n
	if side.Positive() {
		b.Lo[a] = l.Owned.Hi[a] + n
	}
	b.Hi[a] = b.Lo[a] + 1
	return b
}

// secondLayer returns the second layer but for what is behind Dirichlet walls of later axes
// too: they count there.
func secondLayer(l domain.Layout, side domain.Direction, later []domain.Direction) domain.Box {
	b := layer(l, side, 1)
	for _, other := range later {
		switch o := other.Axis(); {
		case o == side.Axis():
		case other.Positive():
			b.Hi[o] = l.Owned.Hi[o]
		default:
			b.Lo[o] = l.Owned.Lo[o]
		}
	}
	return b
}

// grown adds the layers of one side to a box.
func grown(b domain.Box, side domain.Direction, width domain.Radius) domain.Box {
	if a := side.Axis(); side.Positive() {
		b.Hi[a] += width.Plus[a]
	} else {
		b.Lo[a] -= width.Minus[a]
	}
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
