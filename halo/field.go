package halo

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Field is one array over the grid: for each subdomain a block of memory on
// its device, with ghosts of Width layers.
type Field struct {
	streams.Closers
	Placement *Placement
	Width     domain.Radius
	Parts     []kernels.Array // by rank
	stages    []*stage        // by rank, made when first used
}

// NewField allocates a field of elements of the given size in bytes. Its
// content is undefined; see Fill. Close frees it.
func NewField(p *Placement, width domain.Radius, elementSize int) (*Field, error) {
	if err := p.CheckWidth(width); err != nil {
		return nil, err
	}
	f := &Field{Placement: p, Width: width, stages: make([]*stage, len(p.Subdomains))}
	for _, s := range p.Subdomains {
		l, err := domain.NewLayout(s.Box, width, elementSize)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		m, err := p.Devices[s.Rank].Alloc(l.Bytes())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("halo: a field over %v: %w", s.Box, err), f.Close())
		}
		f.Add(m)
		f.Parts = append(f.Parts, kernels.Array{Data: m.All(), Layout: l})
	}
	return f, nil
}

// Bytes returns the device memory that the part of the given rank takes.
func (f *Field) Bytes(rank int) int64 { return f.Parts[rank].Data.Length }

// CopyTo copies all of src, ghosts included, to dst, a field of the same
// placement and width, and waits for it.
func CopyTo(dst, src *Field) error {
	for rank, from := range src.Parts {
		to := dst.Parts[rank]
		if to.Layout != from.Layout {
			return fmt.Errorf("halo: copy between fields of different layouts")
		}
		st, err := src.stageFor(rank)
		if err != nil {
			return err
		}
		if err := st.stream.Copy(to.Data, from.Data); err != nil {
			return err
		}
		if err := st.stream.Sync(transferLimit); err != nil {
			return err
		}
	}
	return nil
}
