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

// load is the total work of the ranks of a multiprocessor in a round, for any number of ranks.
type load struct {
	compute string
	bytes   int64 // of messages
	work    int64 // iterations of newton per thread with one rank; bytes of copies
}

// loads returns the measured loads of a kind of computation. Of two loads with equal messages, the first computes about
// as long as it exchanges, and the second three times as long: for 132 multiprocessors at 1.8 GHz with 64 float64 units
// each, and for the memory rates of an H100 and an H200.
func loads(compute string) (all []load) {
	for _, l := range map[string][]load{
		newton: {{bytes: 16 << 10, work: 512}, {bytes: 256 << 10, work: 5 << 10}},
		copies: {{bytes: 16 << 10, work: 128 << 10}, {bytes: 256 << 10, work: 1 << 20}},
	}[compute] {
		all = append(all, load{compute, l.bytes, l.work}, load{compute, l.bytes, 3 * l.work})
	}
	return all
}

// overlapTasks returns the tasks of all loads. Ranks start staggered only with two devices: partners on one device
// would start at different times.
func (r *run) overlapTasks() (all []bench.Task) {
	for _, compute := range r.options.Compute {
		for _, each := range r.options.PerMultiprocessor {
			for _, load := range loads(compute) {
				for _, staggered := range r.options.Staggered {
					if staggered == 0 || each > 1 && len(r.Devices) > 1 {
						all = append(all, r.overlapTask(each, load, staggered))
					}
				}
			}
		}
	}
	return all
}

// lapOf returns what a rank of an overlap measurement does in a round of a load.
func (m measurement) lapOf(total load) lap {
	each := int64(m.ranks.PerMultiprocessor)
	l := lap{Bytes: max(16, total.bytes/each/16*16)}
	if total.compute == newton {
		l.Work, l.Span = max(1, total.work/each), int64((1+chains)*8*m.threads())
		return l
	}
	l.Work = max(16, total.work/each/16*16)
	half := l.Work
	if d := m.Devices[0]; !d.GoKernels {
		// Far more than second-level caches hold, in pieces that begin at cache lines.
		const region, piece = 1 << 30, 512
		half = max(half, region/2/(each*int64(d.Cores))/piece*piece)
	}
	l.Span = 2 * half
	return l
}

// overlapTask measures how much of an exchange is hidden: rounds that compute, rounds that exchange and rounds that do
// both. The hidden share is (compute + exchange - both) / min(compute, exchange). Ranks of one multiprocessor begin
// together, or staggered by a share of a round.
func (r *run) overlapTask(each int, total load, staggered int) bench.Task {
	m := measurement{
		run: r, what: overlaps, devices: min(2, len(r.Devices)), kernel: overlapping[total.compute],
		ranks: haloranks.Options{PerMultiprocessor: each},
	}
	both := m.lapOf(total)
	labels := results.NewRow().Label("what", "overlap").Label("devices", m.devices).Label("bytes", both.Bytes).
		Label("per_multiprocessor", each).Label("threads", m.threads()).
		Label("computing", total.compute).Label("work", both.Work).Label("multiprocessor_bytes", total.bytes).
		Label("multiprocessor_work", total.work).Label("staggered", staggered)
	compute, exchange := both, both
	compute.Bytes, exchange.Work, both.Apart = 0, 0, int64(staggered*each)
	return bench.OneRow(labels, func(ctx context.Context, _ *streams.Resources) (row results.Row, err error) {
		var took [3]results.Sample
		row = labels
		for i, l := range []lap{compute, exchange, both} {
			us, ranks, err := m.alone(ctx, l)
			if err != nil {
				return row, bench.LeaveOut(err, haloranks.ErrNoRoom)
			}
			if took[i] = us; i == 0 {
				row = row.Label("ranks", ranks)
			}
		}
		compute, exchange, both := took[0].Median, took[1].Median, took[2].Median
		hidden := (compute + exchange - both) / min(compute, exchange)
		row = row.Value(results.Compute, took[0]).Value(results.Time, took[1]).Value(results.Step, took[2])
		return row.Value(results.Hidden, measure.Exact(hidden)), nil
	})
}

// alone is round, and frees its memory: copies take much memory.
func (m measurement) alone(ctx context.Context, l lap) (us results.Sample, ranks int, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	return m.round(ctx, l, &open)
}
