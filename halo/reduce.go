package halo

import (
	"context"
	"errors"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// Reduce makes a reduction ready, carries it out and returns its result, of all processes that
// share the grid, which all call it. It waits
// for nothing that was queued before: the field must be still.
func Reduce(f *Field, c *kernels.Compiler, op Op, mode ...sums.Mode) (res Result, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	r, err := reduceHere(f, c, op, mode, &open)
	if f != nil {
		err = f.Placement.Agree(context.Background(), "reduce a field", err)
	}
	if err != nil {
		return Result{}, err
	}
	return r.Together(context.Background())
}

// reduceHere reduces what this process has of a field.
func reduceHere(f *Field, c *kernels.Compiler, op Op, mode []sums.Mode, open *streams.Resources) (*Reduction, error) {
	r, err := NewReduction(f, c, op, mode...)
	if err != nil {
		return nil, err
	}
	open.Add(r)
	at := make([]*streams.Stream, len(f.Parts))
	for rank, d := range f.Placement.Devices {
		if d == nil {
			continue
		}
		if at[rank], err = d.NewStream(streams.Normal); err != nil {
			return nil, err
		}
		open.Add(at[rank])
	}
	if err := r.Queue(at); err != nil {
		return nil, err
	}
	return r, Streams(at).Sync(transferLimit)
}
