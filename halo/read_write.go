package halo

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Fill sets every point of the field, ghosts included, from rows: rows(rank)
// is called once by each of several goroutines and returns what fills rows of
// the subdomain of that rank, for those of this process. Ghosts have the indices that they have beyond
// the subdomain, which may lie outside the grid. A T holds a point: all its components.
// A field of several arrays is filled component by component, see Field.Component. A panic
// in rows, or in what they return, is the error, and so is a nil function.
func Fill[T any](f *Field, rows func(rank int) Row[T]) error {
	return FillContext(context.Background(), f, rows)
}

// FillContext is Fill until the context ends: it finishes the rows that are begun, leaves the
// others undefined, and returns the context's error.
func FillContext[T any](ctx context.Context, f *Field, rows func(rank int) Row[T]) error {
	if err := f.Usable(); err != nil {
		return err
	}
	switch {
	case ctx == nil:
		return errNoContext
	case rows == nil:
		return fmt.Errorf("halo: fill field %q: no function", f.Spec.Name)
	}
	for rank, part := range f.Parts {
		if !f.Placement.IsLocal(rank) {
			continue
		}
		err := staged(f, rank, func(st *stageAs[T]) error {
			return st.eachPiece(part.Layout.Owned.Grow(f.Spec.Width), func(piece domain.Box) error {
				if err := st.eachRow(ctx, piece, func() Row[T] { return rows(rank) }); err != nil {
					return fmt.Errorf("halo: fill field %q: %w", f.Spec.Name, err)
				}
				return st.upload(piece)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Read copies the owned points of box, global indices, to dst, x fastest
// without gaps. The box lies in the grid, in subdomains of this process, and dst has box.Points() elements, each a point as
// for Fill.
func Read[T any](dst []T, f *Field, box domain.Box) error {
	return eachOwned(f, box, dst, func(st *stageAs[T], piece domain.Box) error { return st.read(dst, box, piece) })
}

// ReadSubdomain copies what the subdomain of a rank has of a box to dst, as Read does, but ghosts
// too: the box lies in what it owns grown by its ghosts, in global indices, which lie outside of the
// grid for ghosts there. Nothing that is queued may write it.
func ReadSubdomain[T any](dst []T, f *Field, rank int, box domain.Box) error {
	if err := f.Usable(); err != nil {
		return err
	}
	if rank < 0 || rank >= len(f.Parts) {
		return fmt.Errorf("halo: field %q has no subdomain %d", f.Spec.Name, rank)
	}
	if err := f.here(rank); err != nil {
		return err
	}
	l := f.Parts[rank].Layout
	if full := l.Owned.Grow(l.Width); !full.Covers(box) || int64(len(dst)) != box.Points() {
		return fmt.Errorf("halo: box %v of subdomain %d of field %q, which holds %v, with %d elements on the host", box, rank, f.Spec.Name, full, len(dst))
	}
	return staged(f, rank, func(st *stageAs[T]) error {
		if box.Empty() {
			return nil
		}
		return st.eachPiece(box, func(piece domain.Box) error { return st.read(dst, box, piece) })
	})
}

// Write copies src to the owned points of box, as Read copies them from there. No
// other point changes. Ghosts that stand for the points are left as they are: an
// exchange brings them. Nothing that is queued may use the field.
func Write[T any](f *Field, box domain.Box, src []T) error {
	return eachOwned(f, box, src, func(st *stageAs[T], piece domain.Box) error {
		if err := st.download(piece); err != nil { // what lies between the rows is to stay
			return err
		}
		err := st.eachRow(context.Background(), piece, func() Row[T] {
			return func(values []T, at domain.Vec) { copy(values, src[placeIn(box, at):]) }
		})
		if err != nil {
			return err
		}
		return st.upload(piece)
	})
}

// CopyTo copies all of src, ghosts included, to dst, a field of an equal Spec but
// for its name, and of the same placement, and waits for it.
func CopyTo(dst, src *Field) error {
	if err := errors.Join(dst.Usable(), src.Usable()); err != nil {
		return err
	}
	count, _ := src.Spec.Arrays()
	if dst.Placement != src.Placement || !dst.Spec.alike(src.Spec) {
		return fmt.Errorf("halo: copy of field %q to %q, which has another Spec or placement", src.Spec.Name, dst.Spec.Name)
	}
	for rank, from := range src.Parts {
		if !src.Placement.IsLocal(rank) {
			continue
		}
		to := dst.Parts[rank]
		if to.Layout != from.Layout {
			return fmt.Errorf("halo: copy of field %q to %q, which has another layout", src.Spec.Name, dst.Spec.Name)
		}
		st, err := src.stageFor(rank)
		if err != nil {
			return err
		}
		st.Lock()
		for c := range count {
			err = errors.Join(err, st.stream.Copy(dst.Array(rank, c).Data, src.Array(rank, c).Data))
		}
		err = errors.Join(err, st.stream.Sync(transferLimit))
		st.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// eachOwned cuts the box into pieces that one subdomain owns and that fit its
// stage, and calls do for each. There is a value for each of its points.
func eachOwned[T any](f *Field, box domain.Box, values []T, do func(st *stageAs[T], piece domain.Box) error) error {
	if err := f.Usable(); err != nil {
		return err
	}
	if !f.Cut.Grid.Box().Covers(box) || int64(len(values)) != box.Points() {
		return fmt.Errorf("halo: box %v of a field of %v points with %d elements on the host", box, f.Cut.Grid.Size, len(values))
	}
	for rank, part := range f.Parts {
		mine := part.Layout.Owned.Intersect(box)
		if mine.Empty() {
			continue
		}
		if err := f.here(rank); err != nil {
			return err
		}
		err := staged(f, rank, func(st *stageAs[T]) error {
			return st.eachPiece(mine, func(piece domain.Box) error { return do(st, piece) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// here returns an error if another process owns the subdomain of a rank.
func (f *Field) here(rank int) error {
	if p := f.Placement; !p.IsLocal(rank) {
		return fmt.Errorf("halo: subdomain %d of field %q lies in another process, %s", rank, f.Spec.Name, p.Processes.Name(p.Owners[rank]))
	}
	return nil
}

// stageFor returns the stage of a subdomain.
func (f *Field) stageFor(rank int) (*stage, error) {
	return f.stages.of(rank, f.Parts[rank], f.Placement.Devices[rank])
}

// staged calls do with the stage of a subdomain, which nobody else uses meanwhile.
func staged[T any](f *Field, rank int, do func(st *stageAs[T]) error) error {
	if err := f.Usable(); err != nil {
		return err
	}
	if err := holdsPoints[T](f); err != nil {
		return err
	}
	s, err := f.stageFor(rank)
	if err != nil {
		return err
	}
	s.Lock()
	defer s.Unlock()
	return do(&stageAs[T]{s, f.Parts[rank], streams.View[T](s.memory.Bytes())})
}
