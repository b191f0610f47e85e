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

// Field is a Spec with memory: for each subdomain a block on its device, with
// ghosts of Spec.Width layers.
//
// Its methods, and the functions that fill, read and copy fields, may be called from any goroutine. A second exchange
// or run of a field is an error while one is under way, and so is Close during a call that uses the field. Whoever
// reads and writes values at once orders that.
type Field struct {
	resources streams.Resources
	Spec      Spec
	Placement *Placement
	Cut       *domain.Decomposition // of the field's own points: that of the placement, staggered
	// by rank; of a struct-of-arrays field those of the first component; without memory where another process owns it
	Parts  []kernels.Array
	stages *stages // those of the layout
	whole  *Field  // whose component it is, if any
	guard  guard.Guard
}

// NewField allocates a field. Its content is undefined; see Fill. Close frees it. Where a device, or the
// host, has too little memory for it, the error is streams.ErrOutOfMemory, and nothing is allocated.
func NewField(p *Placement, s Spec) (*Field, error) {
	all, err := NewFields(p, s, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// NewFields allocates n fields of one Spec, as NewField does, all or none: as for the time levels of a
// variable. What they bring to and from the host goes through the same pinned memory, one field after the
// other.
func NewFields(p *Placement, s Spec, n int) (all []*Field, err error) {
	if err := Fit(p, n, s); err != nil {
		return nil, err
	}
	shared := newStages(len(p.Subdomains))
	for range n {
		f, err := newField(p, s.filled(), shared)
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

// newField allocates a field of a Spec that was checked.
func newField(p *Placement, s Spec, shared *stages) (*Field, error) {
	f := &Field{Spec: s, Placement: p, Cut: p.Staggered(s.Stagger), stages: shared.share()}
	count, bytes := s.Arrays()
	for _, sub := range f.Cut.Subdomains {
		l, err := domain.NewLayout(sub.Box, s.Width, bytes)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
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

// WrapField returns a field over arrays that the caller has, one per subdomain, by
// rank: memory of its device, see streams.Device.WrapMemory, with a layout of the
// subdomain's points and the Spec's ghosts, see domain.NewStridedLayout. Several
// components of a point must lie together; those that are arrays of their own are
// fields of their own, which one plan exchanges together. Exchanges write the ghosts and
// nothing between them. Close leaves the caller's memory as it is.
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
	if count, _ := s.Arrays(); count != 1 {
		return nil, fmt.Errorf(
			"halo: field %q: %d components as a struct of arrays cannot be wrapped together: wrap a field for each",
			s.Name, count)
	}
	if len(arrays) != len(f.Cut.Subdomains) {
		return nil, fmt.Errorf("halo: field %q: %d arrays for %d subdomains", s.Name, len(arrays),
			len(f.Cut.Subdomains))
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

// checkArray returns an error unless a caller's array is one for the subdomain of a
// rank.
func (f *Field) checkArray(rank int, a kernels.Array) error {
	sub, device := f.Cut.Subdomains[rank], f.Placement.Devices[rank]
	_, bytes := f.Spec.Arrays()
	scalar := f.Spec.alignment()
	switch l := a.Layout; {
	case a.Data.Memory == nil || a.Data.Memory.Device() != device:
		return fmt.Errorf("must be memory of device %v", device)
	case l.Owned != sub.Box || l.Width != f.Spec.Width || l.ElementSize != bytes:
		return fmt.Errorf("holds %v with ghosts %v of %d bytes, not %v with %v of %d", l.Owned, l.Width, l.ElementSize,
			sub.Box, f.Spec.Width, bytes)
	case !l.Fits(a.Data.Length):
		return fmt.Errorf("has %d bytes, its layout %d", a.Data.Length, l.Bytes())
	case a.Data.Offset < 0 || a.Data.Offset > a.Data.Memory.Size()-a.Data.Length:
		return fmt.Errorf("lies outside of its memory: %v", a.Data)
	case a.Data.Address()%uint64(scalar) != 0:
		return fmt.Errorf("begins at address %#x, which is no multiple of the %d bytes of a number", a.Data.Address(),
			scalar)
	}
	return nil
}

// Usable returns an error if there is no field or it is closed.
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

// Hold keeps the field open until release is called, as a run and an exchange do: alone, so that other holds, runs and
// exchanges of the field are errors meanwhile, or shared with holds that are not alone.
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

// hold begins a use of the field, which release ends. Components of a field may be used alone at once, but not beside
// all of it.
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
		return fmt.Errorf("halo: field %q: %w: another exchange or a run has begun and not ended", f.Spec.Name, err)
	}
	return f.Usable()
}

func (f *Field) release(h guard.Hold) {
	f.guard.Release(h)
	if f.whole != nil {
		f.whole.release(min(h, guard.Share))
	}
}

// KeepOpen keeps the field and its devices open until release is called. Exchanges, runs and holds of it go on.
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

// Close frees the field's memory, unless the caller owns it. Close exchangers and other objects of the field first;
// no queued work may still use it. Close does nothing for a nil or closed field. Between Start and Wait of an exchange
// of the field, during a run, and while another call uses the field, it returns an error and the field stays open.
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

// shares reports whether two fields of one placement have memory in common: they are one, or one is a component of the
// other, or they wrap the same arrays.
func (f *Field) shares(g *Field) bool {
	for rank := range f.Parts {
		if !f.Placement.IsLocal(rank) {
			continue
		}
		a, b := f.block(rank), g.block(rank)
		// rows of other fields may lie between those of one that is wrapped
		if a.Overlaps(b) && (a.Offset == b.Offset || f.owner() == g.owner()) {
			return true
		}
	}
	return false
}

// owner returns the field whose component it is, or itself.
func (f *Field) owner() *Field {
	for f.whole != nil {
		f = f.whole
	}
	return f
}

// Component returns a struct-of-arrays field's component as a field of its own, in the same
// memory. It is closed before the field it came from.
func (f *Field) Component(c int) (*Field, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	count, _ := f.Spec.Arrays()
	if !f.Spec.SoA || c < 0 || c >= count {
		return nil, fmt.Errorf("halo: field %q has no component %d of its own", f.Spec.Name, c)
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

// Fit returns an error, which is streams.ErrOutOfMemory, with the numbers, if so many copies of fields of
// each Spec do not fit into the memory that is free now. Nothing is allocated to find out.
func Fit(p *Placement, copies int, specs ...Spec) error {
	if err := p.usable(); err != nil {
		return err
	}
	if copies < 0 {
		return fmt.Errorf("halo: %d fields", copies)
	}
	var all []streams.Demand
	for _, s := range specs {
		s = s.filled()
		if err := s.check(p.Decomposition); err != nil {
			return err
		}
		count, bytes := s.Arrays()
		for _, sub := range p.Staggered(s.Stagger).Subdomains {
			if !p.IsLocal(sub.Rank) {
				continue
			}
			l, err := domain.NewLayout(sub.Box, s.Width, bytes)
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

// counted names fields.
func counted(copies int, specs []Spec) string {
	switch {
	case copies == 1 && len(specs) == 1:
		return fmt.Sprintf("field %q", specs[0].Name)
	case len(specs) == 1:
		return fmt.Sprintf("%d fields %q", copies, specs[0].Name)
	}
	return fmt.Sprintf("%d fields of each of %d kinds", copies, len(specs))
}

// DryRun returns the placement on devices that stand for its own and only count what is allocated on them,
// see streams.DryRun. Fields there are filled and read with nothing. streams.CloseAll closes its Devices.
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
					err = fmt.Errorf("a function panicked: %s", streams.Panicked(p))
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

var errNoPlan = errors.New("halo: the plan is nil")

// fits returns an error unless there is a field for each Spec of the plan, in that
// order and placed as the plan is.
func (p *Plan) fits(fields []*Field) error {
	if p == nil {
		return errNoPlan
	}
	if len(fields) != len(p.Specs) {
		return fmt.Errorf("halo: %d fields for a plan of %d", len(fields), len(p.Specs))
	}
	for i, f := range fields {
		if err := f.Usable(); err != nil {
			return err
		}
		if f.Placement != p.Placement {
			return fmt.Errorf("halo: field %q has another placement than the plan", f.Spec.Name)
		}
		if !f.Spec.Covers(p.Specs[i]) {
			return fmt.Errorf("halo: field %q is %+v, the plan is for %+v", f.Spec.Name, f.Spec, p.Specs[i])
		}
		if j := slices.IndexFunc(fields[:i], f.shares); j >= 0 {
			return fmt.Errorf("halo: field %q comes twice, as fields %d and %d: its ghosts would be written twice",
				f.Spec.Name, j, i)
		}
	}
	return nil
}

// Suits returns an error unless there is a stream for every subdomain of this process, by rank,
// of its device.
func (p *Placement) Suits(at []*streams.Stream) error {
	if err := p.usable(); err != nil {
		return err
	}
	if len(at) != len(p.Devices) {
		return fmt.Errorf("halo: %d streams for %d subdomains", len(at), len(p.Devices))
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

// suits returns an error unless the stream is one of the device of a subdomain.
func (p *Placement) suits(rank int, s *streams.Stream) error {
	if s == nil {
		return fmt.Errorf("halo: there is no stream for subdomain %d", rank)
	}
	if want := p.Devices[rank]; s.Device() != want {
		return fmt.Errorf("halo: the stream for subdomain %d is one of device %v; the subdomain lies on device %v",
			rank, s.Device(), want)
	}
	return nil
}
