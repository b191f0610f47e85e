package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/bench/links"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/streams"
)

// aboutLinks says what the bench measures.
const aboutLinks = `Time messages of all sizes between every two devices, over every path.

Path peer is the driver's peer copy, direct a kernel of the sender that stores into
the receiver's memory, staged a copy into pinned host memory and one out of it.
Modes are one-way; both-ways, two devices to each other at once, of which the rate
is that of both messages together; and, of three devices and more, ring, each device
to the next, and ring-both-ways, each to the next and to the one before, of which the
rate is what leaves a device.

Times are the device's own, from one message to the next of many that follow each
other: the median of batches. A batch stands behind a kernel that holds it until the
host has queued all of it, so that not the host is timed, which takes longer to queue
a small message than a link to carry it. One way two events are around it. In the other
modes the clock of one device counts from there on, where the others begin, until it
has heard from each that its last message has arrived: from the first to begin to the
last to end, so that nothing counts as at once that was not. What it hears by takes
some 10 us of a batch of a millisecond or more, and counts too.

Beside them stand, measured in the same run, the copy within the sender's memory of
as many bytes (path device), and for path staged the slower of the copies to and from
pinned host memory (path pinned), as copy_time and copy_rate.

Before it is timed, each path between two devices is tried with random bytes, of which
the receiver's memory has no byte right before. A link that does not carry them is not
timed; it is named, and the exit code is 1.

Started by mpirun, messages between the first devices of every two processes are timed, by the
host's clock: path mpi, beside path wire, which is MPI alone between host memories. Mode
ping-pong is half of a round trip. --network writes what halox plan --hosts takes.

Ctrl-C ends the bench between two measurements and keeps what it had; --resume goes
on from there.`

func newBenchLinksCommand() *cobra.Command {
	var b benchFlags
	var o links.Options
	var devices []int
	var sizes []string
	var network string
	cmd := &cobra.Command{
		Use:   "links",
		Short: "Time messages of all sizes between every two devices, over every path",
		Long:  aboutLinks,
		Example: `  halox bench links --record links.json --plot links.svg
  halox plot links.json --kind matrix -o matrix.svg
  mpirun -n 2 --host a,b halox bench links --network ours.yaml
  halox bench links --devices 0,1 --paths peer --modes one-way --sizes 1KiB,1MiB,256MiB`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkDevices(devices); err != nil {
				return err
			}
			if o.Sizes, err = option.Sizes("sizes", sizes); err != nil {
				return err
			}
			return b.runTogether(cmd, &o, b.some(devices), withNetwork(&network))
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&devices, "devices", nil, "the devices, counted from 0; without it all GPUs, or four host devices")
	f.StringSliceVar(&sizes, "sizes", defaultSizes(), "sizes of messages")
	f.StringVar(&network, "network", "", "of several hosts: write what halox plan --hosts is to know of the network to this `file`")
	addLinksOptions(f, &o)
	b.add(f)
	return cmd
}

// addLinksOptions adds the flags of what is measured.
func addLinksOptions(f *pflag.FlagSet, o *links.Options) {
	f.StringSliceVar(&o.Paths, "paths", links.Paths(), "paths: "+strings.Join(links.Paths(), ", "))
	f.StringSliceVar(&o.Modes, "modes", links.Modes(), "modes: one-way, both-ways, ring, ring-both-ways")
	f.DurationVar(&o.Budget, "budget", 36*time.Millisecond, "how long to take for each measurement, about")
}

// defaultSizes are the powers of 4 from 1 KiB to 256 MiB.
func defaultSizes() (all []string) {
	for bytes := int64(1 << 10); bytes <= 1<<28; bytes *= 4 {
		all = append(all, strings.ReplaceAll(streams.Size(bytes), " ", ""))
	}
	return all
}
