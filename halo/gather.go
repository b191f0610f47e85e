package halo

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/halox/halox/domain"
)

// Gather is Read where processes share the grid: the process root gets the owned points of the
// box in dst, from whoever has them; on others dst is not looked at. All processes call it, and
// nothing that is queued may write the field. Where there is one process it is Read.
func Gather[T any](ctx context.Context, dst []T, f *Field, box domain.Box, root int) error {
	c, err := newCollection(ctx, f, box, root, dst)
	if err != nil || c == nil {
		return orElse(err, func() error { return Read(dst, f, box) })
	}
	return c.each(func(owner int, piece domain.Box) error {
		values, bytes := room[T](piece)
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
		values, bytes := room[T](piece)
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
		return nil, fmt.Errorf("halo: process %d of %d is to have a box of field %q", root, processes.Size(), f.Spec.Name)
	case !f.Cut.Grid.Box().Covers(box), processes.Rank == root && int64(len(values)) != box.Points():
		return nil, processes.Fail(fmt.Errorf("halo: box %v of a field of %v points with %d elements on the host", box, f.Cut.Grid.Size, len(values)))
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

// room returns memory for the points of a box, as values and as bytes.
func room[T any](box domain.Box) ([]T, []byte) {
	values := make([]T, box.Points())
	var zero T
	return values, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(zero)))
}

// eachLine calls do with the first point and the length of each row of a box.
func eachLine(box domain.Box, do func(at domain.Vec, n int)) {
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			do(domain.Vec{box.Lo[0], y, z}, box.Hi[0]-box.Lo[0])
		}
	}
}
