package kernels

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// StepRank is one device's part of a fused step. Its kernel sweeps the points that the
// device owns, and stores those that neighbours need into their ghosts. Step n reads Fields[(n-1)%2] and writes Fields[n%2].
type StepRank struct {
	Device   *streams.Device
	Fields   [2]Array     // of one layout
	Boundary []domain.Box // the boundary region, up to six boxes that do not overlap
	Interior domain.Box   // all other owned points
	Stores   []GhostStore // up to MaxStores
	Shape    Shape        // in which a fused step sweeps the interior on a GPU; zero for the default
}

// shape returns that of the interior.
func (e StepRank) shape(f largeForm) Shape {
	if e.Shape == (Shape{}) {
		return f.shapes[0]
	}
	return e.Shape
}

// GhostStore says where boundary points go beside their own place: into the ghosts of an
// rank, maybe the same one. For ghosts behind walls that fields are odd about, Odd says
// where, from each point, the value of such a wall lies, a ghost of this rank that no store
// writes: v becomes 2*wall - v, for one wall after the other.
type GhostStore struct {
	Send, Ghost domain.Box // of equal size, owned by this rank and ghosts of the other
	To          int        // rank
	Odd         []domain.Vec
}

// maxOdd is how many walls a store may reflect about: one an axis.
const maxOdd = 3

// StepKind is how a launch makes steps.
type StepKind string

// The kinds: a step a launch, by as many thread blocks as suit the boxes; or any number up to
// 2^30, by thread blocks that stay on the device and wait for each other after each. Resident
// steps keep the field in shared memory and registers, where it fits there;
// StreamedSteps never do, which is for comparisons.
const (
	FusedStep     StepKind = "fused"
	ResidentSteps StepKind = "resident"
	StreamedSteps StepKind = "streamed"
)

// Stepper launches the steps of one rank. All ranks queue the
// same steps, each by one thread. A rank that fails leaves the others waiting, up to
// their limit.
type Stepper struct {
	resources streams.Resources
	kind      StepKind
	device    *streams.Device
	plain     stepKernel
	measured  stepKernel        // the same, which takes the norms of its last step on the way, if there is one
	norms     [2]*NormReduction // of these, by field
	queued    chan stepSpan     // on a host device
	failed    *streams.Memory
	others    []string // devices of the neighbours
	done      stepSpan // of the last launch
}

// stepKernel is a launch, and where its argument says what it makes; nil on a host device.
type stepKernel struct {
	kernel *streams.Kernel
	span   *stepSpan
}

// stepSpan is the first step of a launch, counted from 1, how many it makes, and how many
// launches were before.
type stepSpan struct{ first, count, launch int64 }

// maxSteps is how many steps a launch may make.
const maxSteps = 1 << 30

// maxQueued is how many launches of a host device may be queued.
const maxQueued = 1 << 12

// Queue queues the steps that follow those queued before: one if they are fused, else up to
// 2^30. It returns an error also if the device has waited in vain before, see Err.
func (s *Stepper) Queue(at *streams.Stream, steps int64) error { return s.queue(at, s.plain, steps) }

// Norms returns what gives the norms of steps that QueueMeasured queued, those that write
// Fields[0] and those that write Fields[1]: it is queued behind the step. It is nil where
// steps do not take norms on their way.
func (s *Stepper) Norms(field int) *NormReduction { return s.norms[field] }

// QueueMeasured queues steps as Queue does, to the same bits; on its way the last takes the
// norms of what it writes and of its change. It returns an error where Norms returns nil.
func (s *Stepper) QueueMeasured(at *streams.Stream, steps int64) error {
	if s.measured.kernel == nil {
		return fmt.Errorf("kernels: steps of kind %s on device %v take no norms", s.kind, s.device)
	}
	return s.queue(at, s.measured, steps)
}

func (s *Stepper) queue(at *streams.Stream, k stepKernel, steps int64) error {
	if steps < 1 || s.kind == FusedStep && steps > 1 || steps > maxSteps {
		return fmt.Errorf("kernels: %d steps in one launch of kind %s", steps, s.kind)
	}
	if err := s.Err(); err != nil {
		return err
	}
	s.done = stepSpan{s.done.first + s.done.count, steps, s.done.launch + 1}
	if k.span != nil {
		*k.span = s.done
	} else {
		s.queued <- s.done
	}
	return at.Launch(k.kernel)
}

// Err returns an error if the device has waited in vain for a neighbour, or its thread blocks
// for each other.
func (s *Stepper) Err() error {
	switch n := atomic.LoadUint64(flags.Word(s.failed, 0)); n {
	case 0:
		return nil
	case flags.Itself:
		return fmt.Errorf("kernels: thread blocks of device %v waited in vain for each other to make a step: something else keeps its multiprocessors", s.device)
	default:
		return fmt.Errorf("kernels: device %v waited in vain for its neighbour on device %s to make a step", s.device, s.others[n-1])
	}
}

// Steppers makes the steps of ranks ready, which are on different devices that reach
// each other. limit is how long a device waits for a neighbour. The fields' ghosts are
// those of step 0 when the first step is queued.
func (c *Compiler) Steppers(kind StepKind, s stencil.Stencil, real Real, ranks []StepRank, limit time.Duration) (all []*Stepper, err error) {
	n, err := newStepGroup(kind, s, real, ranks, limit)
	if err != nil {
		return nil, err
	}
	var made streams.Resources
	defer func() {
		if err != nil {
			all, err = nil, errors.Join(err, made.Close())
		}
	}()
	for i, rank := range ranks {
		s := &Stepper{kind: kind, device: rank.Device, done: stepSpan{first: 1, launch: -1}}
		made.Add(s)
		all = append(all, s)
		if err := s.allocate(n, i); err != nil {
			return nil, err
		}
	}
	if n.tiled != nil { // a program for each shape of tiles
		for i, rank := range ranks {
			plain, measured := c.tilesOf(n, i)
			c.begin(rank.Device, plain, measured)
		}
	}
	for i, s := range all {
		if rank := ranks[i]; rank.Device.Backend == streams.Host {
			err = s.onHost(n, i)
		} else if n.tiled != nil {
			err = s.tilesOnGPU(c, n, i)
		} else {
			err = s.onGPU(c, n, i)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// allocate makes the memory by which a rank and its neighbours wait for each other.
func (s *Stepper) allocate(n *stepGroup, i int) (err error) {
	if err := n.flags.Open(i, &s.resources); err != nil {
		return err
	}
	s.others, s.failed = n.flags.Names(i), n.flags.Report(i)
	if n.tiled != nil {
		if n.tiled.inbox[i], err = streams.Upload(s.device, make([]byte, n.inboxOffset(i, len(n.tiled.boxes[i].tiles)))); err != nil {
			return err
		}
		s.resources.Add(n.tiled.inbox[i])
	}
	return nil
}

// Close frees what it holds. Closing twice is no error.
func (s *Stepper) Close() error { return s.resources.Close() }
