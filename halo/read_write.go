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

// Fill sets every point of the field, including ghosts. rows(rank) is called once by each of several
// goroutines, for the subdomains of this process, and returns the function that fills rows of the subdomain
// of that rank. Ghosts have indices outside the subdomain, possibly outside the grid. A T holds one point:
// all its components. Fill a field with several arrays component by component, see Field.Component. A nil
// function is an error, and so is a panic in rows or in the functions it returns.
func Fill[T any](f *Field, rows func(rank int) Row[T]) error {
	return FillContext(context.Background(), f, rows)
}

// FillContext is Fill with a context: when the context ends, it finishes the rows in progress, leaves the
// others undefined, and returns the context's error.
func FillContext[T any](ctx context.Context, f *Field, rows func(rank int) Row[T]) error {
	if err := f.Usable(); err != nil {
		return err
	}
	switch {
	case ctx == nil:
		return errNoContext
	case rows == nil:
		return fmt.Errorf("halo: fill field %q: the function is nil", f.Spec.Name)
	}
	for rank, part := range f.Parts {
		if !f.Placement.IsLocal(rank) {
			continue
		}
		err := staged(f, rank, func(st *stageAs[T]) error {
			box := part.Layout.Owned.Grow(f.Spec.Width)
			for a, constant := range f.Spec.Constant {
				if constant {
					box.Lo[a], box.Hi[a] = part.Layout.Owned.Lo[a], part.Layout.Owned.Lo[a]+1
				}
			}
			return st.eachPiece(box, func(piece domain.Box) error {
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

// Read copies the owned points of box to dst, x fastest without gaps. The box is in global indices, inside
// the grid and in subdomains of this process. dst has box.Points() elements, one point each, as for Fill. In
// Read, Write and Gather, T may also be byte for points of any size: then dst has all the bytes of the points.
func Read[T any](dst []T, f *Field, box domain.Box) error {
	return eachOwned(f, box, dst, func(st *stageAs[T], piece domain.Box) error { return st.read(dst, box, piece) })
}

// ReadSubdomain copies the part of a box in the subdomain of a rank to dst, as Read does, including ghosts:
// the box is in the owned box grown by the ghosts, in global indices, which may be outside of the grid. No
// queued work may write the box.
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
	if full := l.Owned.Grow(l.Width); !full.Covers(box) || int64(len(dst)) != box.Points()*perPoint[T](f) {
		return fmt.Errorf(
			"halo: box %v must be inside subdomain %d of field %q (%v) and have as many elements as dst, got %d",
			box, rank, f.Spec.Name, full, len(dst))
	}
	return staged(f, rank, func(st *stageAs[T]) error {
		if box.Empty() {
			return nil
		}
		return st.eachPiece(box, func(piece domain.Box) error { return st.read(dst, box, piece) })
	})
}

// Write copies src to the owned points of box, in the order of Read. It changes no other points: copies in
// ghosts are updated by the next exchange. No queued work may use the field.
func Write[T any](f *Field, box domain.Box, src []T) error {
	if err := f.Usable(); err == nil && f.Spec.IsConstant() {
		return fmt.Errorf("halo: field %q is constant along an axis: it must be set by Fill", f.Spec.Name)
	}
	return eachOwned(f, box, src, func(st *stageAs[T], piece domain.Box) error {
		if !st.packs(piece) { // the bytes between the rows must keep their values
			if err := st.download(piece); err != nil {
				return err
			}
		}
		err := st.eachRow(context.Background(), piece, func() Row[T] {
			return func(values []T, at domain.Vec) { copy(values, src[placeIn(box, at)*st.each:]) }
		})
		if err != nil {
			return err
		}
		return st.upload(piece)
	})
}

// CopyTo copies all of src, including ghosts, to dst and waits for it. dst must have an equal Spec, except
// for the name, and the same decomposition and devices.
func CopyTo(dst, src *Field) error { return copyAll([]*Field{dst}, []*Field{src}) }

// copyAll copies each field to another one, on all devices at once, and waits for it.
func copyAll(dst, src []*Field) (err error) {
	for i := range dst {
		if err := copies(dst[i], src[i]); err != nil {
			return err
		}
		for _, f := range []*Field{dst[i], src[i]} {
			release, err := f.KeepOpen()
			if err != nil {
				return err
			}
			defer release()
		}
	}
	var used []*stage
	defer func() {
		for _, st := range used {
			err = errors.Join(err, st.stream.Sync(transferLimit))
			st.Unlock()
		}
	}()
	for rank := range dst[0].Parts {
		if !dst[0].Placement.IsLocal(rank) {
			continue
		}
		st, err := dst[0].stageFor(rank)
		if err != nil {
			return err
		}
		st.Lock()
		used = append(used, st)
		for i, f := range src {
			count, _ := f.Spec.Arrays()
			for c := range count {
				to, from := dst[i].Array(rank, c).Data, f.Array(rank, c).Data
				from.Length = min(from.Length, to.Length) // an array of the caller may be longer than its layout
				to.Length = from.Length
				if err := st.stream.Copy(to, from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copies returns an error unless src can be copied to dst.
func copies(dst, src *Field) error {
	if err := errors.Join(dst.Usable(), src.Usable()); err != nil {
		return err
	}
	if !dst.Placement.equals(src.Placement) || !dst.Spec.alike(src.Spec) {
		return fmt.Errorf("halo: copy field %q to %q: Specs, decompositions and devices must be equal", src.Spec.Name,
			dst.Spec.Name)
	}
	for rank, from := range src.Parts {
		if src.Placement.IsLocal(rank) && dst.Parts[rank].Layout != from.Layout {
			return fmt.Errorf("halo: copy of field %q to %q: must have equal layouts", src.Spec.Name, dst.Spec.Name)
		}
	}
	return nil
}

// eachOwned divides the box into pieces in one subdomain that fit its stage, and calls do for each. values
// has one value per point of the box.
func eachOwned[T any](f *Field, box domain.Box, values []T, do func(st *stageAs[T], piece domain.Box) error) error {
	if err := f.Usable(); err != nil {
		return err
	}
	if !f.Cut.Grid.Box().Covers(box) || int64(len(values)) != box.Points()*perPoint[T](f) {
		return fmt.Errorf(
			"halo: box %v must be inside the %v points of the field and have as many elements as values, got %d",
			box, f.Cut.Grid.Size, len(values))
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
		return fmt.Errorf("halo: subdomain %d of field %q belongs to another process, %s: use halo.Gather or halo.Scatter",
			rank, f.Spec.Name, p.Processes.Name(p.Owners[rank]))
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
	return do(&stageAs[T]{s, f.Parts[rank], streams.View[T](s.memory.Bytes()), perPoint[T](f)})
}

// perPoint returns the number of elements of type T per point: its bytes if T is byte, otherwise 1.
func perPoint[T any](f *Field) int64 {
	if _, bytes := f.Spec.Arrays(); reflect.TypeFor[T]() == reflect.TypeFor[byte]() {
		return int64(bytes)
	}
	return 1
}

// holdsPoints returns an error unless a T can hold a point of the field: the sizes are equal and, if T
// consists of numbers, they match the elements. Bytes and structs hold anything.
func holdsPoints[T any](f *Field) error {
	var zero T
	count, want := f.Spec.Arrays()
	if count > 1 {
		return fmt.Errorf(
			"halo: field %q has %d arrays, one per component: access them one by one, see Field.Component",
			f.Spec.Name, count)
	}
	if size := int(unsafe.Sizeof(zero)) * int(perPoint[T](f)); size != want {
		return fmt.Errorf("halo: values for field %q must have %d bytes, got %d", f.Spec.Name, want, size)
	}
	number := reflect.TypeFor[T]()
	for number.Kind() == reflect.Array {
		number = number.Elem()
	}
	if !madeOf(f.Spec.Element, number) {
		return fmt.Errorf("halo: values for field %q must hold elements %s, got type %v", f.Spec.Name, f.Spec.Element,
			reflect.TypeFor[T]())
	}
	return nil
}

// madeOf reports whether values of a type can represent the elements.
func madeOf(e domain.Element, t reflect.Type) bool {
	alike, size := !e.IsNumber(), int(t.Size())
	switch t.Kind() {
	case reflect.Struct, reflect.Uint8, reflect.Int8, reflect.Bool:
		return true
	case reflect.Float32, reflect.Float64:
		return alike || !e.IsInteger() && size == e.Scalar().Size()
	case reflect.Complex64, reflect.Complex128:
		return alike || e.IsComplex() && size == e.Size()
	case reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64, reflect.Int,
		reflect.Uint:
		return alike || e.IsInteger() && size == e.Size()
	}
	return false // pointers and types that contain pointers
}

// FillPoints sets every point of the field, including ghosts, to value(p), with p in global indices, possibly
// outside the grid for ghosts. Several goroutines call value concurrently; a panic in it is returned as an
// error. It is the simple form of Fill.
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

// ReadAll returns all owned points of the field, x fastest without gaps. It is the simple form of Read.
func ReadAll[T any](f *Field) ([]T, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	box := f.Cut.Grid.Box()
	values := make([]T, box.Points()*perPoint[T](f))
	return values, Read(values, f, box)
}

// Gather is Read for a grid shared by processes: process root gets the owned points of the box in dst, from
// all processes; dst is ignored on the others. All processes call it. No queued work may write the field.
// With one process it is Read.
func Gather[T any](ctx context.Context, dst []T, f *Field, box domain.Box, root int) error {
	c, err := newCollection(ctx, f, box, root, dst)
	if err != nil || c == nil {
		return orElse(err, func() error { return Read(dst, f, box) })
	}
	each := perPoint[T](f)
	return c.each(func(owner int, piece domain.Box) error {
		values := make([]T, piece.Points()*each)
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
			copy(dst[placeIn(box, at)*each:][:int64(n)*each], values[placeIn(piece, at)*each:])
		})
		return nil
	})
}

// Scatter is Write for a grid shared by processes: the points of the box, on all processes, get the values in
// src of process root. All processes call it. With one process it is Write.
func Scatter[T any](ctx context.Context, f *Field, box domain.Box, src []T, root int) error {
	c, err := newCollection(ctx, f, box, root, src)
	if err != nil || c == nil {
		return orElse(err, func() error { return Write(f, box, src) })
	}
	each := perPoint[T](f)
	return c.each(func(owner int, piece domain.Box) error {
		if c.me != root && c.me != owner {
			return nil
		}
		values := make([]T, piece.Points()*each)
		bytes := bytesOf(values)
		if c.me == root {
			eachLine(piece, func(at domain.Vec, n int) {
				copy(values[placeIn(piece, at)*each:], src[placeIn(box, at)*each:][:int64(n)*each])
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

// orElse returns the error, or the result of f if it is nil.
func orElse(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// collection iterates over the subdomains that have points of a box.
type collection struct {
	field    *Field
	box      domain.Box
	me, root int
}

// newCollection checks the arguments of Gather and Scatter. It returns nil for a single process.
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
		return nil, fmt.Errorf("halo: field %q: root must be less than %d, got %d", f.Spec.Name, processes.Size(), root)
	case !f.Cut.Grid.Box().Covers(box), processes.Rank == root && int64(len(values)) != box.Points()*perPoint[T](f):
		return nil, processes.Fail(fmt.Errorf(
			"halo: box %v must be inside the %v points of the field and have as many elements as values, got %d",
			box, f.Cut.Grid.Size, len(values)))
	}
	return &collection{f, box, processes.Rank, root}, nil
}

// each calls do with the piece of the box in each subdomain, in their order. If it fails, the other processes
// fail too.
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
