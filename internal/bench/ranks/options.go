// Package ranks times device ranks: messages and notifications between two of them, between all of them at once,
// barriers, and the share of an exchange that other computing ranks hide.
package ranks

import (
	"fmt"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p/mpi"
)

// Options selects the measurements.
type Options struct {
	What              []string // see Command
	Bytes             []int64  // of messages back and forth
	Messages          []int64  // bytes of messages of all ranks at once
	Vectors           []int64  // bytes of vectors of collectives, multiples of 8
	Compute           []string // for overlap, see Command
	Staggered         []int    // for overlap: whether ranks of one multiprocessor start staggered: 0, 1 or both
	PerMultiprocessor []int    // ranks
	Threads           int      // of a rank
	Budget            time.Duration
}

// The measurements.
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

// The computations of ranks in measurement overlap.
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
			Compute: computes(), Staggered: []int{0, 1}, PerMultiprocessor: []int{1, 2, 4, 8}, Threads: 128,
			Budget: 50 * time.Millisecond,
		},
		About: `Values of --what:

  latency      single messages and notifications
  bandwidth    messages of all ranks at once
  barrier      barriers
  overlap      rounds that compute and exchange
  collectives  broadcast, reduce and allreduce
  channels     messages through channels
  proxy        messages copied by host threads
  compare      steps by device ranks, by streams and by graphs

Times are device times, medians over launches. docs/how-to/benchmark-a-machine.md has the
details. Ctrl-C keeps the results so far; --resume continues.`,
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
		{Name: "staggered", Value: &o.Staggered, Help: "overlap: whether the ranks of a multiprocessor start " +
			"together (0) or staggered (1)", To: 1},
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
