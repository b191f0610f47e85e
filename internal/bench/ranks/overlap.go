package ranks

import (
	"context"
	"errors"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// overlapTask measures how much of an exchange is hidden: rounds that compute, rounds that exchange and rounds
// that do both. The hidden share is (compute + exchange - both) / min(compute, exchange).
// Ranks of one multiprocessor begin together, or each a share of a round later than the one before.
func (r *run) overlapTask(each int, bytes, work int64, apart int) bench.Task {
	m := measurement{run: r, devices: min(2, len(r.Devices)), kernel: overlap, ranks: haloranks.Options{PerMultiprocessor: each}}
	labels := results.NewRow().Label("what", "overlap").Label("devices", m.devices).Label("bytes", bytes).Label("per_multiprocessor", each).Label("threads", m.threads()).Label("work", work).Label("apart", apart)
	return bench.Task{Labels: labels, Measure: func(ctx context.Context) (rows []results.Row, err error) {
		var open streams.Resources
		defer func() { err = errors.Join(err, open.Close()) }()
		var took [3]results.Sample
		row := labels
		for i, l := range []lap{{Work: work}, {Bytes: bytes}, {Bytes: bytes, Work: work, Apart: int64(apart * each)}} {
			us, ranks, err := m.round(ctx, l, &open)
			if errors.Is(err, haloranks.ErrNoRoom) {
				return []results.Row{leftOut(labels, err)}, nil
			}
			if err != nil {
				return nil, err
			}
			if took[i] = us; i == 0 {
				row = row.Label("ranks", ranks)
			}
		}
		compute, exchange, both := took[0].Median, took[1].Median, took[2].Median
		hidden := (compute + exchange - both) / min(compute, exchange)
		return []results.Row{row.Value(results.Compute, took[0]).Value(results.Time, took[1]).Value(results.Step, took[2]).Value(results.Hidden, measure.Exact(hidden))}, nil
	}}
}
