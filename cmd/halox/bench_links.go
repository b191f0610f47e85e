package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// linksBench is what halox bench links is asked for.
type linksBench struct {
	backend             string
	devices             []int
	sizes, paths, modes []string
	budget              time.Duration
	settings            any // all of them, for the record
	recorder
}

// The modes: who sends while a link is measured.
const (
	oneWayMode   = "one-way"
	bothWaysMode = "both-ways"
	ringMode     = "ring"
	ringBothMode = "ring-both-ways"
)

func linkModes() []string { return []string{oneWayMode, bothWaysMode, ringMode, ringBothMode} }

func linkPaths() []string {
	return []string{string(p2p.Peer), string(p2p.Direct), string(p2p.Staged)}
}

func newBenchLinksCommand() *cobra.Command {
	var b linksBench
	cmd := &cobra.Command{
		Use:   "links",
		Short: "Time messages of all sizes between every two devices, over every path",
		Long: `Time messages of all sizes between every two devices, over every path.

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

Ctrl-C ends the bench between two measurements and keeps what it had; --resume goes
on from there.`,
		Example: `  halox bench links --record links.json --plot links.svg
  halox plot links.json --kind matrix -o matrix.svg
  halox bench links --devices 0,1 --paths peer --modes one-way --sizes 1KiB,1MiB,256MiB`,
		Args: cobra.NoArgs,
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
	f.StringSliceVar(&b.sizes, "sizes", defaultSizes(), "sizes of messages")
	f.StringSliceVar(&b.paths, "paths", linkPaths(), "paths: peer, direct, staged")
	f.StringSliceVar(&b.modes, "modes", linkModes(), "modes: one-way, both-ways, ring, ring-both-ways")
	f.DurationVar(&b.budget, "budget", 36*time.Millisecond, "how long to take for each measurement, about")
	b.addFlags(f)
	return cmd
}

// defaultSizes are the powers of 4 from 1 KiB to 256 MiB.
func defaultSizes() (all []string) {
	for bytes := int64(1 << 10); bytes <= 1<<28; bytes *= 4 {
		all = append(all, strings.ReplaceAll(p2p.Size(bytes), " ", ""))
	}
	return all
}

// check refuses flags that make no sense, and returns the sizes, each once, in order.
func (b *linksBench) check() (sizes []int64, err error) {
	sizes, err = parseSizes("sizes", b.sizes)
	slices.Sort(sizes)
	return slices.Compact(sizes), cmp.Or(err,
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		eachOf("paths", b.paths, linkPaths()...),
		eachOf("modes", b.modes, linkModes()...),
		checkDevices(b.devices),
		checkBudget(b.budget),
		b.recorder.check(),
	)
}

// checkDevices refuses a list of devices that has one below 0, or twice.
func checkDevices(ids []int) error {
	for i, id := range ids {
		if id < 0 || slices.Contains(ids[:i], id) {
			return fmt.Errorf("--devices %s: name each device once, counted from 0", commas(ids))
		}
	}
	return nil
}

func checkBudget(budget time.Duration) error {
	if budget <= 0 {
		return fmt.Errorf("--budget %v: give a positive time, such as 20ms", budget)
	}
	return nil
}

// someDevices are those that are named, or all GPUs, or a few host devices, which are all
// alike.
func someDevices(backend string, ids []int, notes io.Writer) (*opened, error) {
	const few = 4
	m, err := openDevices(configs.Devices{Backend: backend, IDs: ids}, notes)
	if err != nil || m.backend != streams.Host || len(ids) > 0 {
		return m, err
	}
	if err := m.close(); err != nil {
		return nil, err
	}
	return openDevices(configs.Devices{Backend: string(streams.Host), Count: few}, notes)
}

// run measures all links and prints the table. Interrupted or failed, it keeps what it had.
func (b *linksBench) run(ctx context.Context, out, notes io.Writer) (err error) {
	sizes, err := b.check()
	if err != nil {
		return err
	}
	m, err := someDevices(b.backend, b.devices, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	links, record, err := b.beginLinked(ctx, m, results.KindLinks, b.settings)
	if err != nil {
		return err
	}
	r := &linksRun{
		devices: m.devices, links: links, compiler: kernels.CompilerFromEnv(), sizes: sizes,
		pace: pace{first: 2, most: 2000, length: b.budget.Seconds() * 1e6 / batches}, record: record, tried: map[hop]error{},
	}
	failure := b.measureAll(ctx, record, r.tasks(b.paths, b.modes), notes)
	return errors.Join(failure, b.keep(record, out, notes), faults(record, notes))
}

// named writes the labels of a row.
func named(row results.Row) string {
	var parts []string
	for _, l := range row.Labels {
		parts = append(parts, l.Name+" "+row.Text(l.Name))
	}
	return strings.Join(parts, ", ")
}

// faults says what was not measured, and why. It is an error if one of them lies.
func faults(r *results.Record, notes io.Writer) (err error) {
	for _, row := range r.Rows {
		if len(row.Values) > 0 {
			continue
		}
		fmt.Fprintf(notes, "not measured: %s: %s\n", named(row), row.Note)
		if err == nil && strings.Contains(row.Note, " lies: ") {
			err = errors.New("a link does not carry what is sent over it")
		}
	}
	return err
}
