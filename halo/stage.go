package halo

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// stageBytes is how much of a field is on its way to or from the host at once.
const stageBytes = 32 << 20

// transferLimit is how long one piece of a field may take between host and
// device.
const transferLimit = 60 * time.Second

// Row sets or takes the values of a row of points: at, at+(1,0,0), ... in
// global indices. It is called by one goroutine.
type Row[T any] func(values []T, at domain.Vec)

// Fill sets every point of the field, ghosts included, from rows: rows(rank)
// is called once by each of several goroutines and returns what fills rows of
// the subdomain of that rank. Ghosts have the indices that they have beyond
// the subdomain, which may lie outside the grid. A T holds a point: all its components.
// A field of several arrays is filled component by component, see Field.Component. A panic
// in rows, or in what they return, is the error.
func Fill[T any](f *Field, rows func(rank int) Row[T]) error {
	if err := f.Usable(); err != nil {
		return err
	}
	for rank, part := range f.Parts {
		st, err := stageOf[T](f, rank)
		if err != nil {
			return err
		}
		box := part.Layout.Owned.Grow(f.Spec.Width)
		err = st.eachPiece(box, func(piece domain.Box) error {
			if err := st.eachRow(piece, func() Row[T] { return rows(rank) }); err != nil {
				return fmt.Errorf("halo: fill field %q: %w", f.Spec.Name, err)
			}
			return st.upload(piece)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Read copies the owned points of box, global indices, to dst, x fastest
// without gaps. The box lies in the grid and dst has box.Points() elements, each a point as
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
	l := f.Parts[rank].Layout
	if full := l.Owned.Grow(l.Width); !full.Covers(box) || int64(len(dst)) != box.Points() {
		return fmt.Errorf("halo: box %v of subdomain %d of field %q, which holds %v, with %d elements on the host", box, rank, f.Spec.Name, full, len(dst))
	}
	st, err := stageOf[T](f, rank)
	if err != nil || box.Empty() {
		return err
	}
	return st.eachPiece(box, func(piece domain.Box) error { return st.read(dst, box, piece) })
}

// read copies a piece of a box to the values of the box.
func (s *stageAs[T]) read(dst []T, box, piece domain.Box) error {
	if err := s.download(piece); err != nil {
		return err
	}
	return s.eachRow(piece, func() Row[T] {
		return func(values []T, at domain.Vec) { copy(dst[placeIn(box, at):], values) }
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
		err := st.eachRow(piece, func() Row[T] {
			return func(values []T, at domain.Vec) { copy(values, src[placeIn(box, at):]) }
		})
		if err != nil {
			return err
		}
		return st.upload(piece)
	})
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
		st, err := stageOf[T](f, rank)
		if err != nil {
			return err
		}
		if err := st.eachPiece(mine, func(piece domain.Box) error { return do(st, piece) }); err != nil {
			return err
		}
	}
	return nil
}

// placeIn returns the place of a point among those of the box, x fastest.
func placeIn(box domain.Box, at domain.Vec) int64 {
	size, p := box.Size(), at.Sub(box.Lo)
	return (int64(p[2])*int64(size[1])+int64(p[1]))*int64(size[0]) + int64(p[0])
}

// stage is pinned memory on the way between the host and one subdomain.
type stage struct {
	part   kernels.Array
	stream *streams.Stream
	memory *streams.Memory
}

// stageFor returns the stage of a subdomain. The field keeps it until it is
// closed: a run that writes its field asks for it again and again.
func (f *Field) stageFor(rank int) (*stage, error) {
	if s := f.stages[rank]; s != nil {
		return s, nil
	}
	part, device := f.Parts[rank], f.Placement.Devices[rank]
	memory, err := device.AllocPinned(min(stageBytes, part.Layout.Bytes()))
	if err != nil {
		return nil, err
	}
	f.resources.Add(memory)
	stream, err := device.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	f.resources.Add(stream)
	f.stages[rank] = &stage{part, stream, memory}
	return f.stages[rank], nil
}

// stageAs is a stage of elements of type T.
type stageAs[T any] struct {
	*stage
	values []T
}

func stageOf[T any](f *Field, rank int) (*stageAs[T], error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	if err := holdsPoints[T](f); err != nil {
		return nil, err
	}
	s, err := f.stageFor(rank)
	if err != nil {
		return nil, err
	}
	return &stageAs[T]{s, streams.View[T](s.memory.Bytes())}, nil
}

// eachPiece cuts the box along its slowest axis into pieces that fit the stage
// and calls f for each.
func (s *stageAs[T]) eachPiece(box domain.Box, f func(piece domain.Box) error) error {
	if _, n := s.part.Layout.Range(box); n <= int64(len(s.values)) {
		return f(box)
	}
	for a := 2; a >= 0; a-- {
		if n := box.Size()[a]; n > 1 {
			low, high := box, box
			low.Hi[a] = box.Lo[a] + n/2
			high.Lo[a] = low.Hi[a]
			if err := s.eachPiece(low, f); err != nil {
				return err
			}
			return s.eachPiece(high, f)
		}
	}
	return fmt.Errorf("halo: a stage of %d elements holds no point", len(s.values))
}

// eachRow calls a Row for every row of the piece in the stage, on all cores. A panic in one ends
// it, and is the error.
func (s *stageAs[T]) eachRow(piece domain.Box, rows func() Row[T]) error {
	n := piece.Size()
	count := int64(n[1]) * int64(n[2])
	var next atomic.Int64
	var group errgroup.Group
	for range min(int64(runtime.GOMAXPROCS(0)), count) {
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					next.Store(count) // the others stop
					err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			row := rows()
			for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
				at := domain.Vec{piece.Lo[0], piece.Lo[1] + int(i%int64(n[1])), piece.Lo[2] + int(i/int64(n[1]))}
				row(s.row(piece, at), at)
			}
			return nil
		})
	}
	return group.Wait()
}

// row returns the values of a row of the piece, which begins at a point.
func (s *stageAs[T]) row(piece domain.Box, at domain.Vec) []T {
	offset, _ := s.part.Layout.Range(piece)
	first := s.part.Layout.Offset(at) - offset
	return s.values[first : first+int64(piece.Size()[0])]
}

// spans returns where the piece lies in the field and in the stage.
func (s *stageAs[T]) spans(piece domain.Box) (field, staged streams.Span) {
	offset, n := s.part.Layout.Range(piece)
	size := int64(s.part.Layout.ElementSize)
	return s.part.Data.Memory.Span(s.part.Data.Offset+offset*size, n*size), s.memory.Span(0, n*size)
}

func (s *stageAs[T]) upload(piece domain.Box) error {
	field, staged := s.spans(piece)
	if err := s.stream.Copy(field, staged); err != nil {
		return err
	}
	return s.stream.Sync(transferLimit)
}

func (s *stageAs[T]) download(piece domain.Box) error {
	field, staged := s.spans(piece)
	if err := s.stream.Copy(staged, field); err != nil {
		return err
	}
	return s.stream.Sync(transferLimit)
}
