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

	// What follows may be nil.
	// List prints what the options ask for instead of a measurement, and returns it for --json. listed is nil if a
	// measurement is asked for.
	List  func(w io.Writer) (listed any, err error)
	Table func(w io.Writer, r *results.Record) error  // prints what was measured; nil: as halox results does
	Chart func(r *results.Record) (plot.Chart, error) // nil: the default chart of the record's kind
}

// Options are what a benchmark is asked for.
type Options interface {
	// Flags returns the flags that set the options.
	Flags() []option.Flag
	// Check rejects options that do not go together, and completes them.
	Check() error
	// Wants says which devices a process opens, and rejects options that do not suit so many processes.
	Wants(p *mpi.Processes) (Wanted, error)
	// Run measures on open devices. It returns the error of the context if that ends, after the measurement that is
	// under way.
	Run(ctx context.Context, on *Machine, to *Recorder) error
}

// Wanted says which devices are opened: those of some ids, the first ones, or all.
type Wanted struct {
	Count int // 0 for all
	IDs   []int
	Few   bool // of CPU devices, which are all alike, a few are enough
}

// Share returns how many of n devices in all a process opens, so that each has as many as the others, or one less. 0
// stands for all.
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
