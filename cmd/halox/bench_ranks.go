package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/ranks"
)

func newBenchRanksCommand() *cobra.Command {
	var b benchFlags
	var o ranks.Options
	var bytes, messages, vectors []string
	cmd := &cobra.Command{
		Use:   "ranks",
		Short: "Time thread blocks that put data into each other's memory and notify each other",
		Long: `Time thread blocks that put data into each other's memory and notify each other.

  latency      a notification, and messages of --bytes with one, between two ranks, of one
               device and of two: half of a round trip
  bandwidth    messages of --messages with a notification each, of all ranks of a device at
               once, to other ranks of it and to those of another
  barrier      of all ranks of one device, of two, and of all
  overlap      rounds in which each rank computes, exchanges a message with a rank of the other
               device, and does both: the hidden share is what the sum of the first two
               exceeds the third by, over the lesser of them. With --compute newton a rank
               iterates for square roots, and with copy it copies memory of its own. With
               --apart 1 the ranks of a multiprocessor begin a share of a round apart
  collectives  broadcast, reduce and allreduce of --vectors by all ranks of one device and of
               all devices, one call after the other, the first and the last rank as roots
  channels     messages of --bytes, up to 4 KiB, of a channel to and fro, and one after the
               other
  proxy        the messages of latency and bandwidth between two GPUs by proxies on the host

Bandwidth, barrier, overlap and collectives are measured with --per-multiprocessor ranks on each
multiprocessor of a GPU.
Times are those of the device, medians of laps of one launch each.

Ctrl-C ends the bench between two measurements and keeps what it had; --resume goes
on from there.`,
		Example: `  halox bench ranks --record ranks.json
  halox plot ranks.json --kind ranks --where what=put\ and\ notify -o ranks.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Bytes, err = option.Sizes("bytes", bytes); err != nil {
				return err
			}
			if o.Messages, err = option.Sizes("messages", messages); err != nil {
				return err
			}
			if o.Vectors, err = option.Sizes("vectors", vectors); err != nil {
				return err
			}
			return b.run(cmd, &o, b.some(nil), benchOutput{})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.What, "what", ranks.Whats(), "what is measured: "+strings.Join(ranks.Whats(), ", "))
	f.StringSliceVar(&bytes, "bytes", []string{"8", "1KiB", "16KiB", "64KiB", "1MiB"}, "bytes of messages to and fro")
	f.StringSliceVar(&messages, "messages", []string{"8", "4KiB", "16KiB", "64KiB"}, "bytes of messages of all ranks at once")
	f.StringSliceVar(&vectors, "vectors", []string{"8", "1KiB", "64KiB"}, "bytes of vectors of collectives, in doubles")
	f.StringSliceVar(&o.Compute, "compute", ranks.Computes(), "overlap: what a rank computes: "+strings.Join(ranks.Computes(), ", "))
	f.IntSliceVar(&o.Apart, "apart", []int{0, 1}, "overlap: whether ranks of one multiprocessor begin together, 0, or apart, 1")
	f.IntSliceVar(&o.PerMultiprocessor, "per-multiprocessor", []int{1, 2, 4, 8}, "ranks on each multiprocessor")
	f.IntVar(&o.Threads, "threads", 128, "threads of a rank")
	f.DurationVar(&o.Budget, "budget", 50*time.Millisecond, "how long to take for each measurement, about")
	b.add(f)
	return cmd
}
