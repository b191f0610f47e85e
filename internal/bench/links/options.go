package links

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
)

// The modes: which devices send at the same time.
const (
	oneWayMode   = "one-way"
	bothWaysMode = "both-ways"
	ringMode     = "ring"
	ringBothMode = "ring-both-ways"
)

func modes() []string { return []string{oneWayMode, bothWaysMode, ringMode, ringBothMode} }

// maxMessages is the maximum number of queued messages, unless a sender's streams allow fewer.
const maxMessages = 2000

// Options selects the measured messages.
type Options struct {
	Devices      []int // IDs; nil: all GPUs or a few CPU devices
	Sizes        []int64
	Paths, Modes []string
	Budget       time.Duration // approximate time per measurement
	Network      string        // file for the description of the network, for halox plan --networks; "": none
}

// Command returns halox bench links.
func Command() bench.Command {
	o := &Options{Paths: paths(), Modes: modes(), Budget: 36 * time.Millisecond}
	for bytes := int64(1 << 10); bytes <= 1<<28; bytes *= 4 {
		o.Sizes = append(o.Sizes, bytes)
	}
	return bench.Command{
		Name: "links", Short: "Time messages of all sizes between every two devices, over every path", Options: o,
		Table: o.table,
		About: `Path peer is the driver's peer copy, direct a kernel of the sender that stores into the
receiver's memory, staged a copy through pinned host memory. Each path is first tested with
random bytes; a path that corrupts them is not timed, and the exit code is 5. The copies
that bound a path are timed too. Times are medians, by the device's clock.

Under mpirun, the command times messages between every two processes, and
--network-file writes a description of the network for halox plan --networks.

docs/how-to/benchmark-a-machine.md explains paths, modes and columns. Ctrl-C keeps the
results so far; --resume continues.`,
		Example: `  halox bench links --record links.json --plot links.svg
  halox plot links.json --kind matrix -o matrix.svg
  mpirun -n 2 --host a,b halox bench links --network-file ours.yaml
  halox bench links --device-ids 0,1 --paths peer --modes one-way --sizes 1KiB,1MiB,256MiB`,
	}
}

// Flags returns the flags.
func (o *Options) Flags() []option.Flag {
	return []option.Flag{
		option.DeviceIDs(&o.Devices, someDevices),
		{Name: "sizes", Value: &o.Sizes, Help: "sizes of messages"},
		option.Paths(&o.Paths, paths()),
		{Name: "modes", Value: &o.Modes, Help: "modes: {}", Choices: modes()},
		option.Budget(&o.Budget),
		{Name: "network-file", Value: &o.Network, Help: "write a description of the network between hosts, for " +
			"halox plan --networks, to this `file`"},
	}
}

const someDevices = "IDs of the devices (default all GPUs, or four CPU devices)"

// Check rejects invalid options. Each size is measured once, in order.
func (o *Options) Check() error {
	o.Sizes = slices.Compact(slices.Sorted(slices.Values(o.Sizes)))
	return option.CheckDeviceIDs(o.Devices, 0, false)
}

// Wants returns the devices of a process, and rejects options that do not support the number of processes.
func (o *Options) Wants(p *mpi.Processes) (w bench.Wanted, err error) {
	switch {
	case o.Network != "" && (p.IsAlone() || slices.Max(p.Nodes) == 0):
		return w, errors.New("--network-file: needs processes on at least two hosts")
	case p.IsAlone():
		return bench.Wanted{IDs: o.Devices, Few: true}, nil
	case len(o.Devices) > 0:
		return w, errors.New("--device-ids: must not be set with several processes: each uses its first device")
	case p.Rank == 0:
		err = option.CheckFiles([]option.File{{Name: "--network-file", Path: o.Network}})
	}
	return bench.Wanted{Count: 1}, err
}

// latencyOptions selects the measured latencies.
type latencyOptions struct {
	Devices []int         // IDs; nil: all GPUs or a few CPU devices
	Paths   []string      // of messages
	Budget  time.Duration // approximate time per measurement
}

// LatencyCommand returns halox bench latency.
func LatencyCommand() bench.Command {
	return bench.Command{
		Name: "latency", Short: "Time launches, events, flags and small messages",
		Options: &latencyOptions{Paths: paths(), Budget: 50 * time.Millisecond}, Alone: true,
		About: `  issue a kernel    host time to queue an empty kernel
  kernel and wait   host time to queue an empty kernel and wait for it
  kernel to kernel  device time between successive kernels in a stream
  event and wait    host time to queue an event on an idle stream and wait for it
  event to device   from an event of one device until a stream of another continues
  flag              from a running kernel to one on another device: a store over the
                    link, and a load that sees it
  flag between host and device
                    the same with a thread of the host, flags in pinned host memory
  message           8 bytes from one device to another, over each path, with the events
                    that order the two

Times between devices are half of a round trip. Times of events and messages are device
times, without the host's part. All are medians of batches.

Ctrl-C keeps the results so far; --resume continues.`,
		Example: `  halox bench latency --record latency.json --plot latency.svg
  halox bench latency --device-ids 0,1 --paths direct`,
	}
}

// Flags returns the flags.
func (o *latencyOptions) Flags() []option.Flag {
	return []option.Flag{
		option.DeviceIDs(&o.Devices, someDevices),
		option.Paths(&o.Paths, paths()),
		option.Budget(&o.Budget),
	}
}

// Check rejects invalid options.
func (o *latencyOptions) Check() error { return option.CheckDeviceIDs(o.Devices, 0, false) }

// Wants returns the devices.
func (o *latencyOptions) Wants(*mpi.Processes) (bench.Wanted, error) {
	return bench.Wanted{IDs: o.Devices, Few: true}, nil
}

// table prints the measurements, and writes a description of the network between hosts to a file, if one is named.
func (o *Options) table(w io.Writer, r *results.Record) error {
	if err := bench.WriteTable(w, r); err != nil || o.Network == "" {
		return err
	}
	text, err := networkOf(r)
	if err == nil {
		err = files.Write(o.Network, []byte(text))
	}
	if err != nil {
		return fmt.Errorf("--network-file: %w", err)
	}
	_, err = fmt.Fprintln(w, "wrote", o.Network)
	return err
}

// networkOf returns the file for halox plan --networks from the measured links between hosts, the slowest of them: the
// time of the smallest ping-pong by MPI alone, the rate of the largest one-way message by MPI alone, or of one of two
// simultaneous messages in opposite directions if that is slower, and the time that halox adds to the first. Exchanges
// send in both directions at once.
func networkOf(r *results.Record) (string, error) {
	smallest, largest := math.Inf(1), 0.
	for _, row := range r.Rows {
		if bytes, ok := row.Float("bytes"); ok && row.Text("link") == "network" {
			smallest, largest = min(smallest, bytes), max(largest, bytes)
		}
	}
	latency, message, rate := 0., 0., math.Inf(1)
	for _, row := range r.Rows {
		bytes, _ := row.Float("bytes")
		if row.Text("link") != "network" {
			continue
		}
		switch took := row.Median(results.Time); {
		case row.Text("mode") == "ping-pong" && bytes == smallest && row.Text("path") == "wire":
			latency = max(latency, took)
		case row.Text("mode") == "ping-pong" && bytes == smallest:
			message = max(message, took)
		case row.Text("mode") == "one-way" && bytes == largest && row.Text("path") == "wire":
			rate = min(rate, row.Median(results.Rate))
		case row.Text("mode") == "both-ways" && bytes == largest && row.Text("path") == "wire":
			rate = min(rate, row.Median(results.Rate)/2)
		}
	}
	if latency == 0 || math.IsInf(rate, 1) {
		return "", errors.New("no messages between hosts were measured one way: start processes on several, with " +
			"--modes one-way among others")
	}
	return fmt.Sprintf("# %v bytes back and forth, %.0f bytes one way\nlatency_us: %.4g\nbandwidth_gb_s: %.4g\n"+
		"adapters: 1\nmessage_us: %.4g\n", smallest, largest, latency, rate, max(0, message-latency)), nil
}
