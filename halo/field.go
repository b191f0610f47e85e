package halo

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Field is a Spec with memory: for each subdomain a block on its device, with
// ghosts of Spec.Width layers.
type Field struct {
	resources streams.Resources
	Spec      Spec
	Placement *Placement
	Cut       *domain.Decomposition // of the field's own points: that of the placement, staggered
	Parts     []kernels.Array       // by rank; of a struct-of-arrays field those of the first component; without memory where another process owns it
	stages    *stages               // those of the layout
	whole     *Field                // whose component it is, if any
	held      atomic.Int32          // exchanges under way
	closed    atomic.Bool
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

// WrapField returns a field over arrays that the caller has, one a subdomain, by
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
	f := &Field{Spec: s, Placement: p, Cut: p.Staggered(s.Stagger), Parts: slices.Clone(arrays), stages: newStages(len(p.Subdomains)).share()}
	if count, _ := s.Arrays(); count != 1 {
		return nil, fmt.Errorf("halo: field %q: %d components as a struct of arrays cannot be wrapped together: wrap a field for each", s.Name, count)
	}
	if len(arrays) != len(f.Cut.Subdomains) {
		return nil, fmt.Errorf("halo: field %q: %d arrays for %d subdomains", s.Name, len(arrays), len(f.Cut.Subdomains))
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
		return fmt.Errorf("holds %v with ghosts %v of %d bytes, not %v with %v of %d", l.Owned, l.Width, l.ElementSize, sub.Box, f.Spec.Width, bytes)
	case !l.Fits(a.Data.Length):
		return fmt.Errorf("has %d bytes, its layout %d", a.Data.Length, l.Bytes())
	case a.Data.Offset < 0 || a.Data.Offset > a.Data.Memory.Size()-a.Data.Length:
		return fmt.Errorf("lies outside of its memory: %v", a.Data)
	case a.Data.Address()%uint64(scalar) != 0:
		return fmt.Errorf("begins at address %#x, which is no multiple of the %d bytes of a number", a.Data.Address(), scalar)
	}
	return nil
}

// Usable returns an error if there is no field or it is closed.
func (f *Field) Usable() error {
	switch {
	case f == nil:
		return errors.New("halo: the field is nil")
	case f.closed.Load():
		return fmt.Errorf("halo: field %q is closed", f.Spec.Name)
	case f.whole != nil:
		return f.whole.Usable()
	}
	return nil
}

// hold counts an exchange that begins, or ends.
func (f *Field) hold(n int32) {
	f.held.Add(n)
	if f.whole != nil {
		f.whole.hold(n)
	}
}

// Close frees the field's memory, unless it is the caller's. Nothing queued may
// still use it, and what was made for the field is closed before. It is an error, and
// the field stays open, between the Start and the Wait of an exchange of it. Closing
// twice is no error, nor is closing nil.
func (f *Field) Close() error {
	if f == nil {
		return nil
	}
	if f.held.Load() > 0 {
		return fmt.Errorf("halo: field %q is being exchanged: call Wait before Close", f.Spec.Name)
	}
	if f.closed.Swap(true) {
		return nil
	}
	return errors.Join(f.stages.leave(), f.resources.Close())
}

// block returns the memory of all arrays of a subdomain.
func (f *Field) block(rank int) streams.Span {
	count, _ := f.Spec.Arrays()
	first, last := f.Array(rank, 0).Data, f.Array(rank, count-1).Data
	return first.Memory.Span(first.Offset, last.Offset+last.Length-first.Offset)
}

// Array returns the array of a component of a struct-of-arrays field in the subdomain of
// the given rank; any other field has component 0 alone, of all values a point. It panics where
// there is no such subdomain or component.
func (f *Field) Array(rank, component int) kernels.Array {
	if count, _ := f.Spec.Arrays(); component < 0 || component >= count || rank < 0 || rank >= len(f.Parts) {
		panic(fmt.Sprintf("halo: field %q has no array of component %d in subdomain %d: it has %d arrays in each of %d", f.Spec.Name, component, rank, count, len(f.Parts)))
	}
	a := f.Parts[rank]
	a.Data.Offset += int64(component) * a.Layout.Bytes()
	return a
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
