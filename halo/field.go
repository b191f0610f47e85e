package halo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
	"golang.org/x/sync/errgroup"
)

// Field is a Spec with memory: for each subdomain a block on its device, with Spec.Width layers of ghosts.
//
// Its methods, and the functions that fill, read and copy fields, may be called from any goroutine. It is an
// error to start a second exchange or run of a field while one is in progress, or to close it during a call
// that uses it. The caller orders concurrent reads and writes of values.
type Field struct {
	resources streams.Resources
	Spec      Spec                  // the field's description, with Width raised to Widths
	Placement *Placement            // devices of the subdomains
	Cut       *domain.Decomposition // decomposition of the field's points: the placement's, staggered
	// Parts has one array per rank (of a struct-of-arrays field that of the first component); arrays of
	// subdomains of other processes have no memory.
	Parts  []kernels.Array
	stages *stages // shared by fields of the same layout
	whole  *Field  // the field that this one is a component of, if any
	guard  guard.Guard
}

// NewField allocates a field. Its content is undefined; see Fill. If a device or the host has too little
// memory, the error is streams.ErrOutOfMemory and nothing is allocated. Close frees the memory.
func NewField(p *Placement, s Spec) (*Field, error) {
	all, err := NewFields(p, s, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// NewFields allocates n fields of one Spec, such as the time levels of a variable, or none if one fails; see
// NewField. Their transfers to and from the host share the same pinned memory, one field at a time.
func NewFields(p *Placement, s Spec, n int) (all []*Field, err error) {
	if err := Fit(p, n, s); err != nil {
		return nil, err
	}
	shared := newStages(len(p.Subdomains))
	for range n {
		f, err := newField(p, s.filled(), shared, nil)
		if err != nil {
			for _, f := range all {
				err = errors.Join(err, f.Close())
			}
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// newField allocates a field of a checked Spec, with the layouts of another field unless that is nil.
func newField(p *Placement, s Spec, shared *stages, like *Field) (*Field, error) {
	f := &Field{Spec: s, Placement: p, Cut: p.Staggered(s.Stagger), stages: shared.share()}
	count, _ := s.Arrays()
	for _, sub := range f.Cut.Subdomains {
		l, err := s.layout(sub.Box)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if like != nil {
			l = like.Parts[sub.Rank].Layout
		}
		shared.largest = max(shared.largest, l.Bytes())
		if !p.IsLocal(sub.Rank) {
			f.Parts = append(f.Parts, kernels.Array{Layout: l})
			continue
		}
		m, err := p.Devices[sub.Rank].Alloc(l.Bytes() * int64(count))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("halo: field %q over %v: %w", s.Name, sub.Box, err), f.Close())
		}
		f.resources.Add(m)
		f.Parts = append(f.Parts, kernels.Array{Data: m.Span(0, l.Bytes()), Layout: l})
	}
	return f, nil
}

// WrapField returns a field over arrays of the caller, one per subdomain, by rank. An array is memory of the
// subdomain's device (see streams.Device.WrapMemory) with a layout of the subdomain's points and the Spec's
// ghosts (see domain.NewStridedLayout). Several components of a point must be contiguous; wrap components in
// separate arrays as separate fields and exchange them together by one plan. Exchanges write only the ghosts,
// not the bytes between them. Close does not free the caller's memory.
func WrapField(p *Placement, s Spec, arrays ...kernels.Array) (*Field, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	s = s.filled()
	if err := s.check(p.Decomposition); err != nil {
		return nil, err
	}
	f := &Field{Spec: s, Placement: p, Cut: p.Staggered(s.Stagger), Parts: slices.Clone(arrays),
		stages: newStages(len(p.Subdomains)).share()}
	if s.IsConstant() {
		return nil, fmt.Errorf("halo: field %q: arrays of the caller must not be constant along an axis", s.Name)
	}
	if count, _ := s.Arrays(); count != 1 {
		return nil, fmt.Errorf(
			"halo: field %q: %d components as a struct of arrays cannot be wrapped together: wrap a field for each",
			s.Name, count)
	}
	if len(arrays) != len(f.Cut.Subdomains) {
		return nil, fmt.Errorf("halo: field %q: must have one array per subdomain, got %d for %d subdomains", s.Name,
			len(arrays), len(f.Cut.Subdomains))
	}
	for rank, a := range arrays {
		if !p.IsLocal(rank) {
			continue
		}
		if err := f.checkArray(rank, a); err != nil {
			return nil, fmt.Errorf("halo: field %q: the array of subdomain %d %w", s.Name, rank, err)
		}
	}
	return f, nil
}

// checkArray returns an error unless a caller's array fits the subdomain of a rank.
func (f *Field) checkArray(rank int, a kernels.Array) error {
	sub, device := f.Cut.Subdomains[rank], f.Placement.Devices[rank]
	_, bytes := f.Spec.Arrays()
	scalar := f.Spec.alignment()
	switch l := a.Layout; {
	case a.Data.Memory == nil || a.Data.Memory.Device() != device:
		return fmt.Errorf("must be in memory of device %v", device)
	case l.Owned != sub.Box || l.Width != f.Spec.Width || l.ElementSize != bytes:
		return fmt.Errorf("must have points %v, ghosts %v and %d-byte elements, got %v, %v and %d", sub.Box,
			f.Spec.Width, bytes, l.Owned, l.Width, l.ElementSize)
	case !l.Fits(a.Data.Length):
		return fmt.Errorf("must have the %d bytes of its layout, got %d", l.Bytes(), a.Data.Length)
	case a.Data.Offset < 0 || a.Data.Offset > a.Data.Memory.Size()-a.Data.Length:
		return fmt.Errorf("must be inside its memory, got %v", a.Data)
	case a.Data.Address()%uint64(scalar) != 0:
		return fmt.Errorf("must begin at a multiple of %d bytes, got address %#x", scalar, a.Data.Address())
	}
	return nil
}

// Usable returns an error if the field is nil or closed.
func (f *Field) Usable() error {
	switch {
	case f == nil:
		return errors.New("halo: the field is nil")
	case f.guard.Closed():
		return fmt.Errorf("halo: field %q is closed", f.Spec.Name)
	case f.whole != nil:
		return f.whole.Usable()
	}
	return nil
}

// Hold keeps the field open until release is called. Runs and exchanges hold it alone: then other holds, runs
// and exchanges of the field return an error. Shared holds only exclude those.
func (f *Field) Hold(alone bool) (release func(), err error) {
	h := guard.Share
	if alone {
		h = guard.Alone
	}
	if err := f.Usable(); err != nil {
		return nil, err
	}
	if err := f.hold(h); err != nil {
		return nil, err
	}
	return func() { f.release(h) }, nil
}

// hold begins a use of the field, which release ends. Components of a field may be held at the same time, but
// not together with the whole field.
func (f *Field) hold(h guard.Hold) error {
	if f.whole != nil {
		if err := f.whole.hold(min(h, guard.Share)); err != nil {
			return err
		}
	}
	err := f.guard.Hold(h)
	if err == nil {
		return nil
	}
	if f.whole != nil {
		f.whole.release(min(h, guard.Share))
	}
	if errors.Is(err, guard.ErrBusy) {
		return fmt.Errorf("halo: field %q: %w: another exchange or run is in progress", f.Spec.Name, err)
	}
	return f.Usable()
}

func (f *Field) release(h guard.Hold) {
	f.guard.Release(h)
	if f.whole != nil {
		f.whole.release(min(h, guard.Share))
	}
}

// KeepOpen keeps the field and its devices open until release is called. It does not exclude exchanges, runs
// or holds.
func (f *Field) KeepOpen() (release func(), err error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	if err := streams.Hold(f.Placement.Devices); err != nil {
		return nil, err
	}
	if err := f.hold(guard.Open); err != nil {
		streams.Release(f.Placement.Devices)
		return nil, err
	}
	return func() { f.release(guard.Open); streams.Release(f.Placement.Devices) }, nil
}

// Close frees the field's memory, unless the caller owns it. Close exchangers and other objects of the field
// first; no queued work may still use it. Close does nothing for a nil or closed field. During an exchange, a
// run, or another call that uses the field, it returns an error and the field stays open.
func (f *Field) Close() error {
	if f == nil {
		return nil
	}
	switch err := f.guard.Close(); {
	case errors.Is(err, guard.ErrClosed):
		return nil
	case err != nil:
		return fmt.Errorf("halo: field %q: %w: call Wait before Close, or close it after the run", f.Spec.Name, err)
	}
	return errors.Join(f.stages.leave(), f.resources.Close())
}

// block returns the memory of all arrays of a subdomain.
func (f *Field) block(rank int) streams.Span {
	count, _ := f.Spec.Arrays()
	first, last := f.Array(rank, 0).Data, f.Array(rank, count-1).Data
	return first.Memory.Span(first.Offset, last.Offset+last.Length-first.Offset)
}

// Array returns the array of a component of a struct-of-arrays field in the subdomain of the given rank. Other fields
// have only component 0, with all values of each point. For a nil field, or a rank or component out of range, the array
// has no memory, and functions that take it return an error.
func (f *Field) Array(rank, component int) kernels.Array {
	if f == nil || rank < 0 || rank >= len(f.Parts) {
		return kernels.Array{}
	}
	if count, _ := f.Spec.Arrays(); component < 0 || component >= count {
		return kernels.Array{}
	}
	a := f.Parts[rank]
	a.Data.Offset += int64(component) * a.Layout.Bytes()
	return a
}

// shares reports whether two fields of one placement share memory: they are the same, one is a component of
// the other, or they wrap the same arrays.
func (f *Field) shares(g *Field) bool {
	for rank := range f.Parts {
		if !f.Placement.IsLocal(rank) {
			continue
		}
		a, b := f.block(rank), g.block(rank)
		// rows of other fields may be between the rows of a wrapped field
		if a.Overlaps(b) && (a.Offset == b.Offset || f.owner() == g.owner()) {
			return true
		}
	}
	return false
}

// owner returns the field that this one is a component of, or the field itself.
func (f *Field) owner() *Field {
	for f.whole != nil {
		f = f.whole
	}
	return f
}

// Component returns a component of a struct-of-arrays field as a separate field in the same memory. Close it
// before the field.
func (f *Field) Component(c int) (*Field, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	count, _ := f.Spec.Arrays()
	if !f.Spec.SoA || c < 0 || c >= count {
		return nil, fmt.Errorf("halo: field %q has no separate component %d", f.Spec.Name, c)
	}
	one := &Field{Spec: f.Spec, Placement: f.Placement, Cut: f.Cut, whole: f, stages: f.stages.share()}
	one.Spec.Name += fmt.Sprintf("[%d]", c)
	one.Spec.Components = 1
	if f.Spec.Widths != nil {
		one.Spec.Widths = f.Spec.Widths[c : c+1]
	}
	for rank := range f.Parts {
		one.Parts = append(one.Parts, f.Array(rank, c))
	}
	return one, nil
}

// Fit returns an error, streams.ErrOutOfMemory with the byte counts, if the given number of fields of each
// Spec does not fit into the free memory. It allocates nothing.
func Fit(p *Placement, copies int, specs ...Spec) error {
	if err := p.usable(); err != nil {
		return err
	}
	if copies < 0 {
		return fmt.Errorf("halo: the number of fields must be at least 0, got %d", copies)
	}
	var all []streams.Demand
	for _, s := range specs {
		s = s.filled()
		if err := s.check(p.Decomposition); err != nil {
			return err
		}
		count, _ := s.Arrays()
		for _, sub := range p.Staggered(s.Stagger).Subdomains {
			if !p.IsLocal(sub.Rank) {
				continue
			}
			l, err := s.layout(sub.Box)
			if err != nil {
				return err
			}
			one := l.Bytes() * int64(count) // up to 2^60, see checkSize
			d := streams.Demand{Device: p.Devices[sub.Rank], Held: streams.Held{Memory: math.MaxInt64}}
			if int64(copies) <= math.MaxInt64/one {
				d.Memory = one * int64(copies)
			}
			all = append(all, d)
		}
	}
	if err := streams.Fit(all); err != nil {
		return fmt.Errorf("halo: %s: %w", counted(copies, specs), err)
	}
	return nil
}

// counted names fields in errors.
func counted(copies int, specs []Spec) string {
	switch {
	case copies == 1 && len(specs) == 1:
		return fmt.Sprintf("field %q", specs[0].Name)
	case len(specs) == 1:
		return fmt.Sprintf("%d fields %q", copies, specs[0].Name)
	}
	return fmt.Sprintf("%d fields of each of %d specs", copies, len(specs))
}

// DryRun returns the placement on stand-in devices that only count allocations, see streams.DryRun. Filling
// and reading fields there does nothing. streams.CloseAll closes its Devices.
func (p *Placement) DryRun() *Placement {
	dry := *p
	var here []*streams.Device
	for _, d := range p.Devices {
		if d != nil {
			here = append(here, d)
		}
	}
	made := streams.DryRun(here)
	dry.Devices = make([]*streams.Device, len(p.Devices))
	for rank, d := range p.Devices {
		if d != nil {
			dry.Devices[rank], made = made[0], made[1:]
		}
	}
	return &dry
}

// On returns the plan for another placement of the same subdomains.
func (p *Plan) On(other *Placement) *Plan {
	moved := *p
	moved.Placement = other
	return &moved
}

// stageBytes is the size of the pinned buffer for transfers between a field and the host.
const stageBytes = 32 << 20

// transferLimit is the limit of the transfer of one piece of a field between host and device.
const transferLimit = 60 * time.Second

// Row sets or gets the values of a row of points: at, at+(1,0,0), ... in global indices. One goroutine at a
// time calls it.
type Row[T any] func(values []T, at domain.Vec)

// stage is pinned memory for transfers between the host and one subdomain.
type stage struct {
	sync.Mutex
	stream *streams.Stream
	memory *streams.Memory
}

// stages are the stages of all subdomains, made at first use. Fields of one layout share them, and the last
// one closed frees them, so that a run that writes its fields repeatedly reuses them.
type stages struct {
	mu        sync.Mutex
	resources streams.Resources
	byRank    []*stage
	fields    int
	largest   int64 // size of the largest array of the fields
}

func newStages(ranks int) *stages { return &stages{byRank: make([]*stage, ranks)} }

// share adds a field to the users.
func (s *stages) share() *stages {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fields++
	return s
}

// leave removes a field from the users.
func (s *stages) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fields--; s.fields > 0 {
		return nil
	}
	clear(s.byRank)
	return s.resources.Close()
}

// of returns the stage of a subdomain with the given array.
func (s *stages) of(rank int, part kernels.Array, device *streams.Device) (*stage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.byRank[rank]; st != nil {
		return st, nil
	}
	memory, err := device.AllocPinned(min(stageBytes, max(s.largest, part.Layout.Bytes())))
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

// stageAs is a stage with elements of type T, for one array.
type stageAs[T any] struct {
	*stage
	part   kernels.Array
	values []T
	each   int64 // elements of type T per point: 1, or its bytes
}

// eachPiece divides the box along its slowest axis into pieces that fit the stage and calls f for each. In a
// dry run it does nothing.
func (s *stageAs[T]) eachPiece(box domain.Box, f func(piece domain.Box) error) error {
	if s.stream.Device().IsDry() {
		return nil
	}
	n := box.Points()
	if !s.packs(box) {
		_, n = s.part.Layout.Range(box)
	}
	if n*s.each <= int64(len(s.values)) {
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
	return fmt.Errorf("halo: a stage of %d elements is smaller than a point", len(s.values))
}

// eachRow calls a Row for every row of the piece in the stage, on all cores. It stops when the context ends,
// or at a panic, which it returns as an error.
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
					err = fmt.Errorf("a function panicked: %s", streams.Panicked(p))
				}
			}()
			row := rows()
			if row == nil {
				next.Store(count)
				return errors.New("the function for the rows of a subdomain is nil")
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

// packs reports whether only the points of a box are copied between the field and the stage, instead of the memory from
// the first to the last of them: if that is at least twice as long, and rows are long enough for copies of a box.
func (s *stageAs[T]) packs(box domain.Box) bool {
	l := s.part.Layout
	_, n := l.Range(box)
	row := int64(box.Size()[0]) * int64(l.ElementSize)
	return !l.Uniform() && n >= 2*box.Points() && row >= 256 && l.Pitch > 0 && l.Plane > 0 && l.Plane%l.Pitch == 0 &&
		l.Pitch <= math.MaxInt32/int64(l.ElementSize)
}

// length returns how many points of a row of the piece there are in the stage: one if they share their memory.
func (s *stageAs[T]) length(piece domain.Box) int64 {
	if s.part.Layout.Uniform() {
		return 1
	}
	return int64(piece.Size()[0])
}

// row returns the values of the row of the piece that begins at a point, of those in the stage.
func (s *stageAs[T]) row(piece domain.Box, at domain.Vec) []T {
	offset, _ := s.part.Layout.Range(piece)
	first := s.part.Layout.Offset(at) - offset
	if s.packs(piece) {
		first = placeIn(piece, at)
	}
	return s.values[first*s.each : (first+s.length(piece))*s.each]
}

func (s *stageAs[T]) upload(piece domain.Box) error { return s.transfer(piece, true) }

func (s *stageAs[T]) download(piece domain.Box) error { return s.transfer(piece, false) }

// transfer copies a piece between the field and the stage, and waits.
func (s *stageAs[T]) transfer(piece domain.Box, up bool) (err error) {
	l, size := s.part.Layout, int64(s.part.Layout.ElementSize)
	offset, n := l.Range(piece)
	field := s.part.Data.Memory.Span(s.part.Data.Offset+offset*size, n*size)
	edge, staged := piece.Size(), s.memory.Span(0, n*size)
	row := int64(edge[0]) * size
	to, from := streams.Pitched{Span: field, Pitch: l.Pitch * size, Plane: l.Plane * size},
		streams.Pitched{Span: staged, Pitch: row, Plane: row * int64(edge[1])}
	if s.packs(piece) {
		from.Span.Length = piece.Points() * size
	}
	if !up {
		to, from = from, to
	}
	if s.packs(piece) {
		err = s.stream.CopyBox(to, from, row, int64(edge[1]), int64(edge[2]))
	} else {
		err = s.stream.Copy(to.Span, from.Span)
	}
	if err != nil {
		return err
	}
	return s.stream.Sync(transferLimit)
}

// read copies a piece of a box into the values of the box.
func (s *stageAs[T]) read(dst []T, box, piece domain.Box) error {
	if err := s.download(piece); err != nil {
		return err
	}
	return s.eachRow(context.Background(), piece, func() Row[T] {
		return func(values []T, at domain.Vec) {
			row := dst[placeIn(box, at)*s.each:][:int64(piece.Size()[0])*s.each]
			for n := 0; n < len(row); {
				n += copy(row[n:], values)
			}
		}
	})
}

// placeIn returns the linear index of a point in the box, x fastest.
func placeIn(box domain.Box, at domain.Vec) int64 {
	size, p := box.Size(), at.Sub(box.Lo)
	return (int64(p[2])*int64(size[1])+int64(p[1]))*int64(size[0]) + int64(p[0])
}

var errNoPlan = errors.New("halo: the plan is nil")

// fits returns an error unless there is one field for each Spec of the plan, in that order and with the
// plan's placement.
func (p *Plan) fits(fields []*Field) error {
	if p == nil {
		return errNoPlan
	}
	if len(fields) != len(p.Specs) {
		return fmt.Errorf("halo: must have the %d fields of the plan, got %d", len(p.Specs), len(fields))
	}
	for i, f := range fields {
		if err := f.Usable(); err != nil {
			return err
		}
		if f.Placement != p.Placement {
			return fmt.Errorf("halo: field %q must have the placement of the plan", f.Spec.Name)
		}
		if !f.Spec.Covers(p.Specs[i]) {
			return fmt.Errorf("halo: field %q must have the plan's Spec %+v, got %+v", f.Spec.Name, p.Specs[i], f.Spec)
		}
		if j := slices.IndexFunc(fields[:i], f.shares); j >= 0 {
			return fmt.Errorf("halo: field %q is given twice, as fields %d and %d", f.Spec.Name, j, i)
		}
	}
	return nil
}

// Suits returns an error unless there is one stream per subdomain of this process, by rank, on its device.
func (p *Placement) Suits(at []*streams.Stream) error {
	if err := p.usable(); err != nil {
		return err
	}
	if len(at) != len(p.Devices) {
		return fmt.Errorf("halo: must have one stream per subdomain (%d), got %d", len(p.Devices), len(at))
	}
	for rank, s := range at {
		if !p.IsLocal(rank) {
			continue
		}
		if err := p.suits(rank, s); err != nil {
			return err
		}
	}
	return nil
}

// suits returns an error unless the stream is on the device of a subdomain.
func (p *Placement) suits(rank int, s *streams.Stream) error {
	if s == nil {
		return fmt.Errorf("halo: the stream for subdomain %d is nil", rank)
	}
	if want := p.Devices[rank]; s.Device() != want {
		return fmt.Errorf("halo: the stream for subdomain %d is on device %v, must be on %v", rank, s.Device(), want)
	}
	return nil
}
