package scheme

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
)

// Scheme is how the sweeps and exchanges of a step are ordered over host
// threads and streams.
type Scheme string

// Auto is the scheme that suits the placement, see Choose; Fastest finds it by trial.
const Auto Scheme = "auto"

// Order is how a scheme divides its exchange into two phases.
type Order string

// The orders: LeftRight sends all that goes in + directions, then all that
// goes in - directions; Pairwise exchanges both ways within every other pair
// of neighbours, then within the pairs between.
const (
	LeftRight Order = "left-right"
	Pairwise  Order = "pairwise"
)

// Needs is what a scheme needs of steps, plans and devices, for programs that offer a choice of schemes.
type Needs struct {
	Paths        []p2p.Path // that it can exchange over; all if empty
	Path         p2p.Path   // that it takes if the choice is left to it; p2p.Auto if empty
	Orders       []Order    // that Options.Order may be; none if the scheme has no choice
	MaxDevices   int        // of all processes; 0 for no limit
	OnePerDevice bool       // every subdomain has a separate device
	Steady       bool       // nothing that a step is given may change with time, except by its kernels
	Swept        bool       // halox sweeps the stages: user kernels are rejected
	Processes    bool       // subdomains may belong to several processes, to which messages take path mpi
	Groups       bool       // it can run several steps between two exchanges, see Step.Group
	Within       bool       // it exchanges within a subdomain too, so that groups of steps matter on one device
}

// ErrUnsuited is the error if a scheme cannot run a step on the devices of its placement.
var ErrUnsuited = errors.New("the scheme does not suit the step")

// CheckPath returns an error, ErrUnsuited, if a scheme with these needs cannot exchange over a
// path that is asked for.
func (n Needs) CheckPath(name Scheme, path p2p.Path) error {
	if path != p2p.Auto && !n.takes(path) {
		return fmt.Errorf("scheme: %w: %s exchanges over path %v, not %s", ErrUnsuited, name, n.Paths, path)
	}
	return nil
}

// takes reports whether a scheme can exchange over a path.
func (n Needs) takes(path p2p.Path) bool { return len(n.Paths) == 0 || slices.Contains(n.Paths, path) }

// CheckDevices returns an error if a scheme with these needs cannot take so many devices.
func (n Needs) CheckDevices(name Scheme, devices int) error {
	if n.MaxDevices > 0 && devices > n.MaxDevices {
		return fmt.Errorf("%s: %d devices; must be at most %d", name, devices, n.MaxDevices)
	}
	return nil
}

// Norm is how the change of a step is measured against the tolerance.
type Norm string

// The norms: the largest absolute change, or the root of the sum of its squares, over owned
// points and measured variables.
const (
	MaxNorm Norm = "max"
	L2Norm  Norm = "l2"
)

// Options say how steps are run.
type Options struct {
	Scheme Scheme
	Order  Order    // of TwoStream; LeftRight if empty
	Path   p2p.Path // of messages, for New, which plans them; p2p.Auto if empty
	Steps  int64    // at most

	// The norms of Step.Measured are checked every CheckEvery steps. With 0 they are checked at the end and, unless
	// there are a History or an Interval, about once per second, at least 100 steps after the last check. A run ends at
	// the check that finds them not finite: it has diverged, see Result.Stopped. It also ends when the change, by Norm,
	// is at most Tolerance, with 0 never. Without variables in Step.Measured nothing is checked, and a run that has
	// diverged goes on.
	Tolerance  float64
	Norm       Norm // MaxNorm if empty
	CheckEvery int64
	History    bool // keep the norms of every check
	// Limit is how long a worker waits for another, or for a device, before the run ends with an error that names it;
	// 0 is a minute, or, where processes share the grid, twice their limit, so that their errors, which say more, come
	// first.
	Limit time.Duration
	// Progress, if set, is called some fifty times a second with the number
	// of steps queued. It must return at once.
	Progress func(steps int64)
	// Interval, if set, cuts the run into intervals, to time steps without what begins and ends a run. It is called
	// before the first step, with zeros, and at the end of each interval, when the devices have done all of it, with
	// its steps and the time that they took. It returns how many steps the next one has; after 0 the run ends with one
	// more. All threads wait meanwhile, no longer than Limit. The first interval also starts the threads. Where
	// processes share the grid it is called on all, and the answer of rank 0 counts.
	Interval func(steps int64, took time.Duration) int64

	lookTime time.Duration // replaces the second between checks of runs without CheckEvery in tests; 0 otherwise
	anything bool          // the fields may hold anything: norms that are not finite do not end the run
	trials   []Trial       // that chose the scheme
}

// defaultLimit is the Limit of options that have none.
const defaultLimit = time.Minute

// complete returns the options with defaults filled in, or an error if they make no sense.
func (o Options) complete(p *halo.Placement) (Options, error) {
	if o.Order == "" {
		o.Order = LeftRight
	}
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
		return o, fmt.Errorf("scheme: a run of %d steps: Options.Steps, or what Runner.Steps is given, is 1 or more",
			o.Steps)
	}
	if o.Limit < 0 {
		return o, fmt.Errorf("scheme: Options.Limit is %v: it is how long a worker waits for another, 0 for a minute",
			o.Limit)
	}
	return o, nil
}

// checks reports whether norms are taken before the end of the run, every CheckEvery steps.
func (o Options) checks() bool { return o.CheckEvery > 0 }

// Stopped says why a run ended.
type Stopped string

// The reasons. A run has diverged when its norms are no longer finite.
const (
	StoppedSteps       Stopped = "iterations"
	StoppedTolerance   Stopped = "tolerance"
	StoppedInterrupted Stopped = "interrupted"
	StoppedDiverged    Stopped = "diverged"
)

// Check is the norms and reductions of one step.
type Check struct {
	// Step counts the steps of the run, from 1. The step of p.step() and Stage.Parameters, and the level of
	// Variable.Level, count from the simulation's start: they are Step plus the level at which the run began.
	Step    int64
	Norms   []Norms   // by measured variable
	Reduced []float64 // the reductions of point functions, in the order of Step.Reductions
}

// Norms are the norms of one variable in one step, over owned points and all components. float64 cannot hold squares of
// numbers of which the largest is below 2^-480 or above 2^480. Of these, L2 of the last step of a run is computed from
// the field, scaled. L2Change, and L2 of steps before, whose fields have been overwritten when norms arrive, are then
// the largest values that they can have: the largest magnitude, which is exact, times the root of the number of values,
// or of components.
type Norms struct {
	MaxChange float64 // largest absolute change
	L2Change  float64 // root of the sum of squares of the change
	Max       float64 // largest magnitude
	L2        float64 // root of the mean of squares
}

// Result is the outcome of a run.
type Result struct {
	Scheme  Scheme // that ran
	Steps   int64
	Stopped Stopped
	Check                 // of the last step
	History []Check       // of every check, see Options.History
	Loop    time.Duration // from the first step queued to the last one done
	Bytes   int64         // sent from device to device in steps, and before them of what is only read

	// UpdatesPerSecond is how many points of the grid were stepped in a second of Loop.
	UpdatesPerSecond float64
}

// Tuning is the shape in which a stage is swept.
type Tuning struct {
	Stage  string        // its name
	Block  [2]int        // threads along x and y
	Layers int           // that a thread takes: planes, or rows in two dimensions
	Took   time.Duration // to find that out, on all devices; next to nothing where it was known
}

// Trial is what a step takes by a scheme and a path.
type Trial struct {
	Scheme Scheme        `json:"scheme"`
	Path   p2p.Path      `json:"path"`
	Step   time.Duration `json:"ns"`
	Group  int           `json:"group,omitempty"` // steps between two exchanges; 0 is 1
}

// String is "fused by direct 5.4 us", or "fused by direct, 4 steps an exchange, 5.4 us".
func (t Trial) String() string {
	if t.Group > 1 {
		return fmt.Sprintf("%s by %s, %d steps an exchange, %s", t.Scheme, t.Path, t.Group, p2p.Microseconds(t.Step))
	}
	return fmt.Sprintf("%s by %s %s", t.Scheme, t.Path, p2p.Microseconds(t.Step))
}
