package scheme

import (
	"fmt"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
)

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
	Order  Order    // of TwoStream; LeftRight where it is empty
	Path   p2p.Path // of messages, for New, which plans them; p2p.Auto where it is empty
	Steps  int64    // at most

	// The norms of Step.Measured are looked at every CheckEvery steps, 0 for not before the end. A run ends at the look
	// that finds them not finite: it has diverged, see Result.Stopped. It ends too where the change, by Norm, is at
	// most Tolerance, 0 for never. Without variables in Step.Measured nobody looks, and a run that has diverged goes
	// on.
	Tolerance  float64
	Norm       Norm // MaxNorm where it is empty
	CheckEvery int64
	History    bool // keep the norms of every look
	// Limit is how long a worker waits for another, or for a device, before the
	// run ends with an error that says whom it waited for; a minute where it is 0, and where processes share the grid
	// twice their limit, so that they, who know more, speak first.
	Limit time.Duration
	// Progress, where set, is called some fifty times a second with the number
	// of steps queued. It must return at once.
	Progress func(steps int64)
	// Interval, where set, cuts the run into intervals, to time steps without what begins and ends a run. It is called
	// before the first step, with zeros, and at the end of each interval, when the devices have done all of it, with
	// its steps and the time that they took. It returns how many steps the next one has; after 0 the run ends with one
	// more. All threads wait meanwhile, no longer than Limit. The first interval also starts the threads. Where
	// processes share the grid it is called on all, and the answer of rank 0 counts.
	Interval func(steps int64, took time.Duration) int64

	anything bool // the fields may hold anything: norms that are not finite do not end the run
}

// defaultLimit is the Limit of options that have none.
const defaultLimit = time.Minute

// complete returns the options with what was left out, or an error if they make no sense.
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

// Check is what was taken of one step.
type Check struct {
	// Step counts the steps of the run, from 1. The step of p.step() and Stage.Parameters, and the level of
	// Variable.Level, count from the simulation's start: they are Step plus the level at which the run began.
	Step    int64
	Norms   []Norms   // by measured variable
	Reduced []float64 // the reductions of point functions, in the order of Step.Reductions
}

// Norms are those of one variable in one step, over owned points and all components.
type Norms struct {
	MaxChange float64 // largest absolute change
	L2Change  float64 // root of the sum of squares of the change
	Max       float64 // largest magnitude
	L2        float64 // root of the mean of squares
}

// Result is what a run came to.
type Result struct {
	Scheme  Scheme // that ran
	Steps   int64
	Stopped Stopped
	Check                 // of the last step
	History []Check       // of every look
	Loop    time.Duration // from the first step queued to the last one done
	Bytes   int64         // sent from device to device

	// UpdatesPerSecond is how many points of the grid were stepped in a second of Loop.
	UpdatesPerSecond float64
}

// Tuning is in which shape a stage is swept by a stencil or a point function.
type Tuning struct {
	Stage  string        // its name
	Block  [2]int        // threads along x and y
	Layers int           // that a thread takes: planes, or rows in two dimensions
	Took   time.Duration // to find that out, on all devices; next to nothing where it was known
}
