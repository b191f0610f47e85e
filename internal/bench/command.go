package bench

import (
	"context"
	"io"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// Command is a benchmark as the command line offers it.
type Command struct {
	Name, Short, About, Example string  // About continues Short
	Options                     Options // the defaults
	Alone                       bool    // it measures the devices of one process
	Pair                        bool    // it measures the devices of one process, or of two over networks of its own

	// The following functions may be nil. List prints a list that the options request instead of a measurement, and
	// returns it for --json; listed is nil if a measurement is requested.
	List  func(w io.Writer) (listed any, err error)
	Table func(w io.Writer, r *results.Record) error  // prints what was measured; nil: as halox results does
	Chart func(r *results.Record) (plot.Chart, error) // nil: the default chart of the record's kind
}

// Options are the options of a benchmark.
type Options interface {
	// Flags returns the flags that set the options.
	Flags() []option.Flag
	// Check rejects options that exclude each other, and sets defaults.
	Check() error
	// Wants returns the devices that a process opens, and rejects options that do not support the number of processes.
	Wants(p *mpi.Processes) (Wanted, error)
	// Run measures on open devices. If the context ends, it finishes the current measurement and returns the context's
	// error.
	Run(ctx context.Context, on *Machine, to *Recorder) error
}

// Wanted selects the devices to open: by ID, the first ones, or all.
type Wanted struct {
	Count int // 0 for all
	IDs   []int
	Few   bool // a few CPU devices are enough, since they are identical
}

// Share returns how many of a total of n devices a process opens, so that processes have equal numbers, or differ by
// one; 0 means all.
func Share(p *mpi.Processes, n int) int {
	if p.IsAlone() || n == 0 {
		return n
	}
	each := n / p.Size()
	if p.Rank < n%p.Size() {
		each++
	}
	return max(1, each)
}
