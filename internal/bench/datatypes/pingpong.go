package datatypes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
)

// Run measures messages from the first device to the last, which may be the same, and back.
func (o *PingPongOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	r := o.newRun(on)
	for _, l := range r.channels {
		if err := r.passable(on.Links, l); err != nil {
			return err
		}
	}
	to.Settings["contenders"] = o.Contenders()
	if o.Busy > 0 {
		busy, err := newBusy(ctx, on.Compiler, on.Devices, o.Busy)
		if err != nil {
			return fmt.Errorf("--busy %v: %w", o.Busy, err)
		}
		r.busy = busy
		to.Settings["busy"] = r.busy.describe()
	}
	if err := to.Begin(results.KindPingPong, on.Links); err != nil {
		return err
	}
	failure := to.Measure(ctx, r.tasks(o.work))
	if o.Fragment > 0 || o.Ring > 0 {
		noteWhole(to)
	}
	return failure
}

// newRun says how messages are timed.
func (o *PingPongOptions) newRun(on *bench.Machine) *pingRun {
	from, to := on.Devices[0], on.Devices[len(on.Devices)-1]
	r := &pingRun{
		from: from, to: to, compiler: on.Compiler, channels: o.channels(), check: !o.NoCheck, budget: o.Budget,
		packing:  packing.Options{Blocks: o.Blocks},
		transfer: packing.TransferOptions{Fragment: o.Fragment, Ring: o.Ring},
	}
	r.route = results.NewRow().Label("from", from.ID).Label("to", to.ID)
	if link := on.Links.Between(from, to); link != nil {
		r.route = r.route.Label("link", link.Kind)
	}
	r.load = results.NewRow().Label("thread_blocks", positive(o.Blocks)).Label("busy", positive(o.Busy))
	return r
}

// passable returns an error unless messages can go this channel in both directions.
func (r *pingRun) passable(links *p2p.Links, l channel) error {
	_, _, there := links.Choose(l.path, r.from, r.to, p2p.MessageShape{})
	_, _, back := links.Choose(l.path, r.to, r.from, p2p.MessageShape{})
	if err := errors.Join(there, back); err != nil {
		return fmt.Errorf("--paths %s: %w", l.path, err)
	}
	return nil
}

// noteWhole says how many messages went without the fragments that were asked for.
func noteWhole(to *bench.Recorder) {
	whole, all := 0, 0
	for _, row := range to.Record.Rows {
		if len(row.Values) > 0 {
			all++
			if row.Text("fragment") == "" && row.Text("ring") == "" {
				whole++
			}
		}
	}
	if whole > 0 {
		fmt.Fprintf(to.Notes, "--fragment and --ring do not apply to %d of %d rows: their messages are sent by one job\n", whole, all)
	}
}

// tasks are a row for each channel that suits a workload.
func (r *pingRun) tasks(work []workloads.Workload) (all []bench.Task) {
	for _, w := range work {
		labels := layoutOf(w).Join(r.route).Join(r.load)
		all = append(all, bench.Task{Labels: labels, Measure: func(ctx context.Context) ([]results.Row, error) {
			rows, err := r.measure(ctx, w, labels)
			if err != nil {
				err = fmt.Errorf("%v: %w", w, err)
			}
			return rows, err
		}})
	}
	return all
}

// measure returns a row for each channel whose engine suits the workload; where none does, one with
// these labels that says why. It frees what it made.
func (r *pingRun) measure(ctx context.Context, w workloads.Workload, labels results.Row) (rows []results.Row, err error) {
	c := &pingCase{pingRun: r}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.prepare(w); err != nil {
		return nil, err
	}
	contiguous, err := c.contiguous(ctx, w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("contiguous message: %w", err)
	}
	var unsuited []string
	for _, l := range r.channels {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, us, err := c.measure(ctx, l)
		if errors.Is(err, packing.ErrUnsuited) {
			unsuited = append(unsuited, fmt.Sprintf("by %v: %v", l, err))
			continue
		}
		if err != nil {
			return rows, fmt.Errorf("by %v: %w", l, err)
		}
		rows = append(rows, layoutOf(w).Join(row).Transfer(w.Bytes, us, contiguous))
	}
	if len(rows) == 0 {
		labels.Note = strings.Join(unsuited, "; ")
		rows = append(rows, labels)
	}
	return rows, nil
}
