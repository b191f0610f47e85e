package datatypes

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/results"
)

// Run measures packing on the first device.
func (o *PackOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	to.Settings["contenders"] = o.Contenders()
	if err := to.Begin(results.KindPack, nil); err != nil {
		return err
	}
	r := &packRun{
		device: on.Devices[0], compiler: on.Compiler, contenders: o.figure.contenders(),
		pinned: o.To == ToPinned, check: !o.NoCheck, budget: o.Budget,
		options: packing.Options{Blocks: o.Blocks},
	}
	return to.Measure(ctx, r.tasks(o.work, o.Unpack))
}

// tasks are a row for each contender that suits a workload.
func (r *packRun) tasks(work []workloads.Workload, unpack bool) (all []bench.Task) {
	directions := []string{results.Packed}
	if unpack {
		directions = append(directions, results.Unpacked)
	}
	for _, w := range work {
		for _, direction := range directions {
			all = append(all, bench.Task{Labels: layoutOf(w).Label("direction", direction), Measure: func(ctx context.Context) ([]results.Row, error) {
				rows, err := r.measure(ctx, w, direction)
				if err != nil {
					err = fmt.Errorf("%s %v: %w", direction, w, err)
				}
				return rows, err
			}})
		}
	}
	return all
}

// measure returns a row for each contender that suits the workload. It frees what it
// made.
func (r *packRun) measure(ctx context.Context, w workloads.Workload, direction string) (rows []results.Row, err error) {
	c := &packCase{packRun: r, unpack: direction == results.Unpacked, packers: map[packing.Options]*packing.Packer{}}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.prepare(w); err != nil {
		return nil, err
	}
	for _, by := range r.contenders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.enter(by); err != nil && !errors.Is(err, packing.ErrUnsuited) {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.race(w.Bytes, c.head(w, direction))
}
