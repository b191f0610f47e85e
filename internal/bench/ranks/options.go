// Package ranks times ranks of devices: messages and notifications of two of them, of all of them at once, barriers,
// and how much of an exchange is hidden by ranks that compute meanwhile.
package ranks

import (
	"fmt"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p/mpi"
)

// Options say what is measured.
type Options struct {
	What              []string // see Command
	Bytes             []int64  // of messages to and fro
	Messages          []int64  // bytes of messages of all ranks at once
	Vectors           []int64  // bytes of vectors of collectives, multiples of 8
	Compute           []string // for overlap, see Command
	Apart             []int    // for overlap: whether ranks of one multiprocessor begin apart: 0, 1 or both
	PerMultiprocessor []int    // ranks
	Threads           int      // of a rank
	Budget            time.Duration
}

// What can be measured.
const (
	latencies  = "latency"
	bandwidths = "bandwidth"
	barrier    = "barrier"
	overlaps   = "overlap"
	collective = "collectives"
	channels   = "channels"
	proxies    = "proxy"
	compare    = "compare"
)

func whats() []string {
	return []string{latencies, bandwidths, barrier, overlaps, collective, channels, proxies, compare}
}

// What a rank of overlap can compute.
const (
	newton = "newton"
	copies = "copy"
)

func computes() []string { return []string{newton, copies} }

// Command returns halox bench ranks.
func Command() bench.Command {
	return bench.Command{
		Name: "ranks", Alone: true,
		Short: "Time thread blocks that put data into each other's memory and notify each other",
		Options: &Options{
			What: whats(), Bytes: []int64{8, 1 << 10, 16 << 10, 64 << 10, 1 << 20},
			Messages: []int64{8, 4 << 10, 16 << 10, 64 << 10}, Vectors: []int64{8, 1 << 10, 64 << 10},
			Compute: computes(), Apart: []int{0, 1}, PerMultiprocessor: []int{1, 2, 4, 8}, Threads: 128,
			Budget: 50 * time.Millisecond,
		},
		About: `--what latency times single messages, bandwidth those of all ranks at once, overlap
rounds that compute and exchange, proxy messages by host threads, and compare steps by
device ranks, by streams and by graphs. Times are the device's, medians over launches.

docs/how-to/benchmark-a-machine.md explains all of them. Ctrl-C keeps what was measured;
--resume continues.`,
		Example: `  halox bench ranks --record ranks.json
  halox plot ranks.json --kind ranks --where what=put\ and\ notify -o ranks.svg`,
	}
}

// Flags returns the flags.
func (o *Options) Flags() []option.Flag {
	return []option.Flag{
		{Name: "what", Value: &o.What, Help: "what to measure: {}", Choices: whats()},
		{Name: "bytes", Value: &o.Bytes, Help: "sizes of messages back and forth"},
		{Name: "messages", Value: &o.Messages, Help: "sizes of messages of all ranks at once"},
		{Name: "vectors", Value: &o.Vectors, Help: "sizes of vectors of collectives, multiples of 8 bytes"},
		{Name: "compute", Value: &o.Compute, Help: "overlap: what a rank computes: {}", Choices: computes()},
		{Name: "apart", Value: &o.Apart, Help: "overlap: whether the ranks of a multiprocessor start together (0) or " +
			"staggered (1)", To: 1},
		{Name: "per-multiprocessor", Value: &o.PerMultiprocessor, Help: "numbers of ranks per multiprocessor", From: 1,
			To: 32},
		{Name: "threads", Value: &o.Threads, Help: "threads per rank, a multiple of 32"},
		option.Budget(&o.Budget),
	}
}

// Check rejects invalid options.
func (o *Options) Check() error {
	for _, bytes := range o.Vectors {
		if bytes%8 != 0 {
			return fmt.Errorf("--vectors: must be a multiple of 8 bytes, got %d", bytes)
		}
	}
	if o.Threads < 32 || o.Threads > 1024 || o.Threads%32 != 0 {
		return fmt.Errorf("--threads: must be a multiple of 32 up to 1024, got %d", o.Threads)
	}
	return nil
}

// Wants returns the devices: all GPUs, or a few CPU devices.
func (*Options) Wants(*mpi.Processes) (bench.Wanted, error) { return bench.Wanted{Few: true}, nil }
