package scheme

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
)

// Scheme is how the sweeps and exchanges of a step are ordered over host threads and streams.
type Scheme string

// Auto chooses the scheme: by trial in New and Fastest, or by the placement in Choose.
const Auto Scheme = "auto"

// Order is how a scheme orders the parts of a stage, for schemes that have a choice.
type Order string

// The orders of exchanges of TwoStream: LeftRight first sends all messages in + directions, then those in -
// directions; Pairwise exchanges both ways within every other pair of neighbors, then within the pairs between.
const (
	LeftRight Order = "left-right"
	Pairwise  Order = "pairwise"
)

// The orders of sweeps of Assisted: Concurrent sweeps the boundary region, in parts by the assistants, while the
// main thread's stream sweeps the interior; Serial sweeps the boundary region and then the interior on that
// stream.
const (
	Concurrent Order = "concurrent"
	Serial     Order = "serial"
)

// Needs is the requirements of a scheme for steps, plans and devices, for programs that offer a choice of
// schemes.
type Needs struct {
	Paths        []p2p.Path // supported paths; all if empty
	Path         p2p.Path   // path taken for p2p.Auto; p2p.Auto if empty
	Orders       []Order    // valid values of Options.Order, the default first; none if the scheme has no choice
	MaxDevices   int        // maximum devices of all processes; 0 for no limit
	OnePerDevice bool       // every subdomain must have a separate device
	Steady       bool       // arguments of a step must not vary in time, except by its kernels
	Swept        bool       // user kernels are rejected
	Processes    bool       // subdomains may belong to several processes, over path mpi
	Groups       bool       // several steps between two exchanges are supported, see Step.Group
	LocalGroups  bool       // groups of steps are useful on one device too
}

// ErrUnsuited reports that a scheme cannot run a step on the devices of its placement.
var ErrUnsuited = errors.New("the scheme does not suit the step")

// CheckPath returns an error, ErrUnsuited, if a scheme with these needs cannot exchange over the requested
// path.
func (n Needs) CheckPath(name Scheme, path p2p.Path) error {
	if path != p2p.Auto && !n.takes(path) {
		return fmt.Errorf("scheme: %w: the path of %s must be one of %v, got %s", ErrUnsuited, name, n.Paths, path)
	}
	return nil
}

// takes reports whether a scheme can exchange over a path.
func (n Needs) takes(path p2p.Path) bool { return len(n.Paths) == 0 || slices.Contains(n.Paths, path) }

// CheckDevices returns an error if a scheme with these needs does not support the number of devices.
func (n Needs) CheckDevices(name Scheme, devices int) error {
	if n.MaxDevices > 0 && devices > n.MaxDevices {
		return fmt.Errorf("%s: must have at most %d devices, got %d", name, n.MaxDevices, devices)
	}
	return nil
}

// Norm is the measure of the change of a step that is compared with the tolerance.
type Norm string

// The norms: the largest absolute change, or the root of the sum of its squares, over owned points and
// measured variables.
const (
	MaxNorm Norm = "max"
	L2Norm  Norm = "l2"
)

// Options are the options of a run. The zero value of all but Steps is valid.
type Options struct {
	Scheme Scheme   // scheme of the run; "" means Auto in New
	Order  Order    // order of TwoStream or Assisted; if empty, or of another scheme, the first of Needs.Orders
	Path   p2p.Path // path of messages, for New; p2p.Auto if empty
	Steps  int64    // maximum number of steps, at least 1

	// The norms of Step.Measured are checked every CheckEvery steps. If CheckEvery is 0 they are checked at
	// the end and, without History and Interval, about once per second, at least 100 steps after the last
	// check. A run ends at the check that finds non-finite norms: it has diverged, see Result.Stopped. It
	// also ends when the change, by Norm, is at most Tolerance (0: never). Without variables in Step.Measured
	// nothing is checked, and a diverged run continues.
	Tolerance  float64
	Norm       Norm  // norm of Tolerance; MaxNorm if empty
	CheckEvery int64 // steps between checks; default 0
	History    bool  // keep the norms of every check in Result.History; default false
	// Limit is how long a worker waits for another, or for a device, before the run ends with an error that
	// names it. 0 means a minute or, if processes share the grid, twice their limit, so that their errors,
	// which are more specific, come first.
	Limit time.Duration
	// Progress, if set, is called about fifty times a second with the number of steps queued. It must return
	// immediately.
	Progress func(steps int64)
	// Interval, if set, divides the run into intervals, to time steps without the start and end of a run. It
	// is called before the first step, with zeros, and at the end of each interval, after the devices have
	// finished it, with its steps and their time. It returns the number of steps of the next one; after 0 the
	// run ends with one more. All threads wait for it, no longer than Limit. The first interval also starts
	// the threads. If processes share the grid it is called on all, and the result of rank 0 counts.
	Interval func(steps int64, took time.Duration) int64

	// Keep keeps what the run has prepared on its devices until Runner.Close, or until a run with another scheme or
	// with other options that schemes use. If the next run begins where this one has ended, it prepares nothing. Its
	// steps continue to count in traces. Default false.
	Keep bool

	part     *part         // see RunEvents
	lookTime time.Duration // for tests: replaces the second between checks of runs without CheckEvery
	anything bool          // the fields may have any values: non-finite norms do not end the run
	trials   []Trial       // trials that chose the scheme
}

// A part of a run with events ends at one of them, or with the run.
type part struct{ last bool }

// ends reports whether the run ends with the part. A run without parts does.
func (p *part) ends() bool { return p == nil || p.last }

// defaultLimit is the default of Options.Limit.
const defaultLimit = time.Minute

// complete returns the options with defaults filled in, or an error if they are invalid.
func (o Options) complete(p *halo.Placement) (Options, error) {
	if o.Norm == "" {
		o.Norm = MaxNorm
	}
	if o.Limit == 0 {
		o.Limit = defaultLimit
		if !p.Processes.IsAlone() {
			o.Limit = 2 * p.Processes.Limit()
		}
	}
	if o.Steps < 1 {
		return o, fmt.Errorf("scheme: Options.Steps or argument of Runner.Steps must be at least 1, got %d", o.Steps)
	}
	if o.Limit < 0 {
		return o, fmt.Errorf("scheme: Options.Limit must not be negative, got %v", o.Limit)
	}
	return o, nil
}

// checks reports whether norms are taken before the end of the run, every CheckEvery steps.
func (o Options) checks() bool { return o.CheckEvery > 0 }

// Stopped is the reason why a run ended.
type Stopped string

// The reasons. A run has diverged if its norms are not finite.
const (
	StoppedSteps       Stopped = "iterations"
	StoppedTolerance   Stopped = "tolerance"
	StoppedInterrupted Stopped = "interrupted"
	StoppedDiverged    Stopped = "diverged"
	StoppedTime        Stopped = "time" // by Step.Pace
)

// Check is the norms and reductions of one step.
type Check struct {
	// Step counts the steps of the run, from 1. The step of p.step() and Stage.Parameters, and the level of
	// Variable.Level, count from the start of the simulation: they are Step plus the level at which the run
	// began.
	Step    int64
	Time    float64   // time after the step, since the start of the simulation
	Length  float64   // length of the step
	Norms   []Norms   // norms by measured variable
	Reduced []float64 // reductions of point functions, in the order of Step.Reductions
}

// Norms are the norms of one variable in one step, over owned points and all components. float64 cannot
// represent the squares if the largest number is below 2^-480 or above 2^480. Then L2 of the last step of a
// run is computed from the field, scaled. L2Change, and L2 of earlier steps, whose fields have been
// overwritten when norms arrive, are upper bounds: the largest magnitude, which is exact, times the root of
// the number of values, or of components.
type Norms struct {
	MaxChange float64 // largest absolute change
	L2Change  float64 // root of the sum of squares of the change
	Max       float64 // largest magnitude
	L2        float64 // root of the mean of squares
}

// Result is the outcome of a run.
type Result struct {
	Scheme  Scheme        // the scheme that ran, never Auto
	Steps   int64         // steps run
	Stopped Stopped       // reason of the end
	Check                 // norms and reductions of the last step
	History []Check       // norms of every check, see Options.History
	Loop    time.Duration // from queuing the first step to finishing the last one
	Bytes   int64         // bytes sent from device to device, including the exchange before the first step

	// UpdatesPerSecond is the number of grid points stepped per second of Loop.
	UpdatesPerSecond float64
}

// Tuning is the shape of the sweeps of a stage.
type Tuning struct {
	Stage  string        // name of the stage
	Block  [2]int        // threads along x and y
	Layers int           // planes per thread, or rows in two dimensions
	Took   time.Duration // time of the search on all devices; almost 0 if cached
}

// Trial is the measured time of a step by a scheme and a path.
type Trial struct {
	Scheme Scheme        `json:"scheme"`          // scheme of the trial
	Path   p2p.Path      `json:"path"`            // path of its messages
	Step   time.Duration `json:"ns"`              // time of a step
	Group  int           `json:"group,omitempty"` // steps between two exchanges; 0 is 1
}

// String returns "fused by direct 5.4 us", or "fused by direct, 4 steps per exchange, 5.4 us".
func (t Trial) String() string {
	if t.Group > 1 {
		return fmt.Sprintf("%s by %s, %d steps per exchange, %s", t.Scheme, t.Path, t.Group, p2p.Microseconds(t.Step))
	}
	return fmt.Sprintf("%s by %s %s", t.Scheme, t.Path, p2p.Microseconds(t.Step))
}
