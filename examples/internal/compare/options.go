package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/halo"
)

// The methods.
const (
	Ranks  = "ranks"   // one kernel a device makes all iterations
	queued = "streams" // kernels and copies on streams, ordered by events
	Graphs = "graph"   // the same, captured once and launched as graphs
)

// Methods returns all methods, in the order in which they run.
func Methods() []string { return []string{Ranks, queued, Graphs} }

// Options are what the flags say that all examples have.
type Options struct {
	Devices    halo.Devices
	Methods    []string
	Iterations int // of a sample
	Samples    int

	// Ranks of each device, or, if that is 0, on each multiprocessor, or, if that is 0 too, as many as fit.
	Ranks, PerMultiprocessor int
	Threads                  int // of a rank, and of a thread block of the other methods

	Limit   time.Duration // of every wait of a rank
	Pauses  bool          // ranks pause now and then before they put
	Verify  bool          // what comes out is compared with the reference
	Scaling bool          // the methods run on one device, on two and so on
	CSV     bool          // nothing but the table is printed, as comma-separated values
}

// Pause is the twin of pause_at_random.
func (o Options) Pause() {
	if o.Pauses && rand.N(4) == 0 {
		time.Sleep(rand.N(128 * time.Microsecond))
	}
}

// Bounds of options.
const (
	maxIterations = 1 << 20
	maxSamples    = 1000
	maxRanks      = 1 << 16
)

func parseMethods(text string) (all []string, err error) {
	if text == "all" {
		return Methods(), nil
	}
	for _, name := range strings.Split(text, ",") {
		if !slices.Contains(Methods(), name) || slices.Contains(all, name) {
			return nil, fmt.Errorf("--method %s: want all, or different ones of %s", text, strings.Join(Methods(), ","))
		}
		all = append(all, name)
	}
	return all, nil
}

func (o Options) check() error {
	for _, c := range []struct {
		flag             string
		value, low, high int
	}{
		{"iterations", o.Iterations, 1, maxIterations},
		{"samples", o.Samples, 1, maxSamples},
		{"ranks", o.Ranks, 0, maxRanks},
		{"per-multiprocessor", o.PerMultiprocessor, 0, 64},
		{"threads", o.Threads, 32, 512},
	} {
		if err := Within(c.flag, int64(c.value), int64(c.low), int64(c.high)); err != nil {
			return err
		}
	}
	switch {
	case o.Threads%32 != 0:
		return fmt.Errorf("--threads %d: want a multiple of 32", o.Threads)
	case o.Limit <= 0:
		return fmt.Errorf("--limit %v: want more than 0", o.Limit)
	}
	return nil
}

// Within returns an error unless the value of a flag is within bounds, both possible.
func Within(flag string, value, low, high int64) error {
	if value < low || value > high {
		return fmt.Errorf("--%s %d: want %d to %d", flag, value, low, high)
	}
	return nil
}
