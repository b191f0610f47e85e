package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/links"
)

func newBenchLatencyCommand() *cobra.Command {
	var b benchFlags
	var o links.LatencyOptions
	var devices []int
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
			if err := checkDevices(devices); err != nil {
				return err
			}
			return b.run(cmd, &o, b.some(devices), benchOutput{})
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&devices, "devices", nil, "the devices, counted from 0; without it all GPUs, or four host devices")
	f.StringSliceVar(&o.Paths, "paths", links.Paths(), "paths of messages: "+strings.Join(links.Paths(), ", "))
	f.DurationVar(&o.Budget, "budget", 50*time.Millisecond, "how long to take for each measurement, about")
	b.add(f)
	return cmd
}
