package halo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"unsafe"

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

// Read copies the owned points of box, global indices, to dst, x fastest without gaps. The box lies in the grid, in
// subdomains of this process, and dst has box.Points() elements, each a point as for Fill.
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
		return fmt.Errorf("halo: box %v of subdomain %d of field %q, which holds %v, with %d elements on the host", box,
			rank, f.Spec.Name, full, len(dst))
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
	for _, f := range []*Field{dst, src} {
		release, err := f.KeepOpen()
		if err != nil {
			return err
		}
		defer release()
	}
	count, _ := src.Spec.Arrays()
	if dst.Placement != src.Placement || !dst.Spec.alike(src.Spec) {
		return fmt.Errorf("halo: copy of field %q to %q, which has another Spec or placement", src.Spec.Name,
			dst.Spec.Name)
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
		return fmt.Errorf("halo: box %v of a field of %v points with %d elements on the host", box, f.Cut.Grid.Size,
			len(values))
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
		return fmt.Errorf("halo: subdomain %d of field %q lies in another process, %s", rank, f.Spec.Name,
			p.Processes.Name(p.Owners[rank]))
	}
	return nil
}

// stageFor returns the stage of a subdomain.
func (f *Field) stageFor(rank int) (*stage, error) {
	return f.stages.of(rank, f.Parts[rank], f.Placement.Devices[rank])
}

// staged calls do with the stage of a subdomain, under its lock.
func staged[T any](f *Field, rank int, do func(st *stageAs[T]) error) error {
	release, err := f.KeepOpen()
	if err != nil {
		return err
	}
	defer release()
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

// holdsPoints returns an error unless a T can hold a point of the field: it has as many bytes, and
// where it is made of numbers they are those of the elements. Bytes hold anything, and so does a
// struct.
func holdsPoints[T any](f *Field) error {
	var zero T
	count, want := f.Spec.Arrays()
	if count > 1 {
		return fmt.Errorf("halo: field %q has %d arrays, a component each: take them one by one, see Field.Component",
			f.Spec.Name, count)
	}
	if size := int(unsafe.Sizeof(zero)); size != want {
		return fmt.Errorf("halo: values of %d bytes for field %q with elements of %d", size, f.Spec.Name, want)
	}
	number := reflect.TypeFor[T]()
	for number.Kind() == reflect.Array {
		number = number.Elem()
	}
	if !f.Spec.Element.madeOf(number.Kind()) {
		return fmt.Errorf("halo: values of type %v for field %q with elements %s", reflect.TypeFor[T](), f.Spec.Name,
			f.Spec.Element)
	}
	return nil
}

// madeOf reports whether numbers of a kind may stand for elements.
func (e Element) madeOf(kind reflect.Kind) bool {
	switch kind {
	case reflect.Float32:
		return e == Float32 || e == Complex64 || !e.number()
	case reflect.Float64:
		return e == Float64 || e == Complex128 || !e.number()
	case reflect.Int32, reflect.Uint32:
		return e == Int32 || !e.number()
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		return e == Int64 || !e.number()
	case reflect.Complex64:
		return e == Complex64 || !e.number()
	case reflect.Complex128:
		return e == Complex128 || !e.number()
	case reflect.Int16, reflect.Uint16:
		return !e.number()
	case reflect.Struct, reflect.Uint8, reflect.Int8, reflect.Bool:
		return true
	}
	return false // pointers, and what has some
}

// number reports whether the element is a number.
func (e Element) number() bool { return e.whole() || e.complex() || e == Float32 || e == Float64 }

// FillPoints sets every point of the field, ghosts included, to value(p), p in
// global indices, which lie outside the grid for ghosts there. value is called
// by several goroutines at once; if it panics, or is nil, that is the error. It is the simple form of Fill.
func FillPoints[T any](f *Field, value func(p domain.Vec) T) error {
	if value == nil {
		return Fill[T](f, nil)
	}
	return Fill(f, func(int) Row[T] {
		return func(values []T, at domain.Vec) {
			for i := range values {
				values[i] = value(domain.Vec{at[0] + i, at[1], at[2]})
			}
		}
	})
}

// ReadAll returns all owned points of the field, x fastest without gaps. It is
// the simple form of Read.
func ReadAll[T any](f *Field) ([]T, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	box := f.Cut.Grid.Box()
	values := make([]T, box.Points())
	return values, Read(values, f, box)
}

// Gather is Read where processes share the grid: the process root gets the owned points of the
// box in dst, from whoever has them; on others dst is not looked at. All processes call it, and
// nothing that is queued may write the field. Where there is one process it is Read.
func Gather[T any](ctx context.Context, dst []T, f *Field, box domain.Box, root int) error {
	c, err := newCollection(ctx, f, box, root, dst)
	if err != nil || c == nil {
		return orElse(err, func() error { return Read(dst, f, box) })
	}
	return c.each(func(owner int, piece domain.Box) error {
		values := make([]T, piece.Points())
		bytes := bytesOf(values)
		if owner == c.me {
			if err := Read(values, f, piece); err != nil {
				return err
			}
		}
		switch {
		case c.me == root && owner != root:
			if err := c.receive(ctx, bytes, owner); err != nil {
				return err
			}
		case c.me == owner && owner != root:
			return c.send(ctx, bytes, root)
		case c.me != root:
			return nil
		}
		eachLine(piece, func(at domain.Vec, n int) {
			copy(dst[placeIn(box, at):][:n], values[placeIn(piece, at):])
		})
		return nil
	})
}

// Scatter is Write where processes share the grid: the points of the box get what the process
// root has in src, wherever they lie. All processes call it. Where there is one it is Write.
func Scatter[T any](ctx context.Context, f *Field, box domain.Box, src []T, root int) error {
	c, err := newCollection(ctx, f, box, root, src)
	if err != nil || c == nil {
		return orElse(err, func() error { return Write(f, box, src) })
	}
	return c.each(func(owner int, piece domain.Box) error {
		if c.me != root && c.me != owner {
			return nil
		}
		values := make([]T, piece.Points())
		bytes := bytesOf(values)
		if c.me == root {
			eachLine(piece, func(at domain.Vec, n int) {
				copy(values[placeIn(piece, at):], src[placeIn(box, at):][:n])
			})
		}
		switch {
		case c.me == root && owner != root:
			return c.send(ctx, bytes, owner)
		case owner != root:
			if err := c.receive(ctx, bytes, root); err != nil {
				return err
			}
		}
		return Write(f, piece, values)
	})
}

// orElse returns the error, or what f returns where there is none.
func orElse(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// collection goes through the subdomains that have points of a box.
type collection struct {
	field    *Field
	box      domain.Box
	me, root int
}

// newCollection checks the arguments of Gather and Scatter. It is nil where one process has all.
func newCollection[T any](ctx context.Context, f *Field, box domain.Box, root int, values []T) (*collection, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	processes := f.Placement.Processes
	switch {
	case processes.IsAlone() && ctx == nil:
		return nil, errNoContext
	case processes.IsAlone():
		return nil, nil
	case ctx == nil:
		return nil, processes.Fail(errNoContext)
	case root < 0 || root >= processes.Size():
		return nil, fmt.Errorf("halo: process %d of %d is to have a box of field %q", root, processes.Size(),
			f.Spec.Name)
	case !f.Cut.Grid.Box().Covers(box), processes.Rank == root && int64(len(values)) != box.Points():
		return nil, processes.Fail(fmt.Errorf("halo: box %v of a field of %v points with %d elements on the host", box,
			f.Cut.Grid.Size, len(values)))
	}
	return &collection{f, box, processes.Rank, root}, nil
}

// each calls do with the piece that each subdomain has of the box, in their order. Where it fails
// the other processes are told.
func (c *collection) each(do func(owner int, piece domain.Box) error) error {
	p := c.field.Placement
	for rank, sub := range c.field.Cut.Subdomains {
		piece := sub.Box.Intersect(c.box)
		if piece.Empty() {
			continue
		}
		if err := do(p.Owners[rank], piece); err != nil {
			if p.Processes.Err() == nil {
				return p.Processes.Fail(err)
			}
			return err
		}
	}
	return nil
}

func (c *collection) send(ctx context.Context, b []byte, to int) error {
	return c.field.Placement.Processes.SendBytes(ctx, c.what(), b, to)
}

func (c *collection) receive(ctx context.Context, b []byte, from int) error {
	return c.field.Placement.Processes.ReceiveBytes(ctx, c.what(), b, from)
}

func (c *collection) what() string { return fmt.Sprintf("points of field %q", c.field.Spec.Name) }

// bytesOf returns the memory of values.
func bytesOf[T any](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(*new(T))))
}

// eachLine calls do with the first point and the length of each row of a box.
func eachLine(box domain.Box, do func(at domain.Vec, n int)) {
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			do(domain.Vec{box.Lo[0], y, z}, box.Hi[0]-box.Lo[0])
		}
	}
}
