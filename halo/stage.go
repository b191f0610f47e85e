package halo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
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

// stage is pinned memory on the way between the host and one subdomain.
type stage struct {
	sync.Mutex
	stream *streams.Stream
	memory *streams.Memory
}

// stages are those of all subdomains, made when they are first used. Fields of one layout share them, and
// the last that is closed closes them: a run that writes its field asks for them again and again.
type stages struct {
	mu        sync.Mutex
	resources streams.Resources
	byRank    []*stage
	fields    int
}

func newStages(ranks int) *stages { return &stages{byRank: make([]*stage, ranks)} }

// share counts one more field.
func (s *stages) share() *stages {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fields++
	return s
}

// leave counts one field less.
func (s *stages) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fields--; s.fields > 0 {
		return nil
	}
	clear(s.byRank)
	return s.resources.Close()
}

// of returns the stage of a subdomain, whose array is given.
func (s *stages) of(rank int, part kernels.Array, device *streams.Device) (*stage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.byRank[rank]; st != nil {
		return st, nil
	}
	memory, err := device.AllocPinned(min(stageBytes, part.Layout.Bytes()))
	if err != nil {
		return nil, err
	}
	s.resources.Add(memory)
	stream, err := device.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	s.resources.Add(stream)
	s.byRank[rank] = &stage{stream: stream, memory: memory}
	return s.byRank[rank], nil
}

// stageAs is a stage of elements of type T, for one array.
type stageAs[T any] struct {
	*stage
	part   kernels.Array
	values []T
}

// eachPiece cuts the box along its slowest axis into pieces that fit the stage
// and calls f for each. In a dry run there is nothing to bring.
func (s *stageAs[T]) eachPiece(box domain.Box, f func(piece domain.Box) error) error {
	if s.stream.Device().IsDry() {
		return nil
	}
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
// it, and is the error; so does the context.
func (s *stageAs[T]) eachRow(ctx context.Context, piece domain.Box, rows func() Row[T]) error {
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
			if row == nil {
				next.Store(count)
				return errors.New("no function for the rows of a subdomain")
			}
			for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
				at := domain.Vec{piece.Lo[0], piece.Lo[1] + int(i%int64(n[1])), piece.Lo[2] + int(i/int64(n[1]))}
				if err := ctx.Err(); err != nil {
					return err
				}
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

// read copies a piece of a box to the values of the box.
func (s *stageAs[T]) read(dst []T, box, piece domain.Box) error {
	if err := s.download(piece); err != nil {
		return err
	}
	return s.eachRow(context.Background(), piece, func() Row[T] {
		return func(values []T, at domain.Vec) { copy(dst[placeIn(box, at):], values) }
	})
}

// placeIn returns the place of a point among those of the box, x fastest.
func placeIn(box domain.Box, at domain.Vec) int64 {
	size, p := box.Size(), at.Sub(box.Lo)
	return (int64(p[2])*int64(size[1])+int64(p[1]))*int64(size[0]) + int64(p[0])
}
