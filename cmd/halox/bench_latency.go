package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
)

// latencyBench is what halox bench latency is asked for.
type latencyBench struct {
	backend  string
	devices  []int
	paths    []string
	budget   time.Duration
	settings any // all of them, for the record
	recorder
}

func newBenchLatencyCommand() *cobra.Command {
	var b latencyBench
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Time the smallest pieces of work: launches, events, flags, small messages",
		Long: `Time the smallest pieces of work: launches, events, flags, small messages.

  issue a kernel    host time to queue a kernel that does nothing
  kernel and wait   host time until one is queued and done
  kernel to kernel  device time from one to the next of many in a stream
  event and wait    host time until an event is queued and done, on an idle stream
  event to device   from an event of one device until a stream of another goes on
  flag              from a kernel on one device to one on another, both of which run on:
                    a store over the link, and a load that sees it
  message           8 bytes from one device to another, over each path, with the events
                    that order the two

What goes from device to device goes back too, and again: the times are halves of round
trips. Those of events and messages are device time; all was queued before the first
began, so that the host's part does not count. Times are medians of batches.

Ctrl-C ends the bench between two measurements and keeps what it had; --resume goes
on from there.`,
		Example: `  halox bench latency --record latency.json --plot latency.svg`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := untilInterrupted(cmd.Context())
			defer release()
			b.settings = settingsOf(cmd.Flags())
			return b.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.IntSliceVar(&b.devices, "devices", nil, "the devices, counted from 0; without it all GPUs, or four host devices")
	f.StringSliceVar(&b.paths, "paths", linkPaths(), "paths of messages: peer, direct, staged")
	f.DurationVar(&b.budget, "budget", 50*time.Millisecond, "how long to take for each measurement, about")
	b.addFlags(f)
	return cmd
}

// check refuses flags that make no sense.
func (b *latencyBench) check() error {
	return cmp.Or(
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		eachOf("paths", b.paths, linkPaths()...),
		checkDevices(b.devices),
		checkBudget(b.budget),
		b.recorder.check(),
	)
}

// run measures everything and prints the table. Interrupted or failed, it keeps what it had.
func (b *latencyBench) run(ctx context.Context, out, notes io.Writer) (err error) {
	if err := b.check(); err != nil {
		return err
	}
	m, err := someDevices(b.backend, b.devices, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	links, record, err := b.beginLinked(ctx, m, results.KindLatency, b.settings)
	if err != nil {
		return err
	}
	const smallMessage = 8
	r := &latencyRun{
		linksRun: &linksRun{
			devices: m.devices, links: links, compiler: kernels.CompilerFromEnv(),
			sizes: []int64{smallMessage}, record: record, tried: map[hop]error{},
		},
		budget: b.budget,
	}
	failure := b.measureAll(ctx, record, r.tasks(b.paths), notes)
	return errors.Join(failure, b.keep(record, out, notes), faults(record, notes))
}
