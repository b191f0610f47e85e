package flags

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/halox/halox/internal/poll"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// Gate holds a stream until the host opens it, so that the work queued behind it runs at the speed of the device,
// not of the host that queues it. Kernels behind it must have run before, since drivers may do work at the first
// launch of a kernel that waits for the gate.
type Gate struct {
	resources streams.Resources
	device    *streams.Device
	limit     time.Duration
	flags     *streams.Memory // pinned: how often it was opened, and whether a wait timed out
	kernel    *streams.Kernel
	arg       gateArgs // of the Go form; the CUDA form has its own
}

// NewGate creates a gate for one stream of the device at a time. It opens by itself after the limit, in which case
// Open returns an error.
func NewGate(c *kernels.Compiler, d *streams.Device, limit time.Duration) (*Gate, error) {
	found, err := c.Load(d, latencyProgram(), "gate")
	if err != nil {
		return nil, err
	}
	made := &Gate{device: d, limit: limit}
	if made.flags = made.resources.AllocPinned(d, 2*lineBytes); made.flags == nil {
		return nil, made.resources.Err()
	}
	clear(made.flags.Bytes())
	made.arg = gateArgs{
		open: made.flags.Address(), limit: limit.Nanoseconds(), failed: made.flags.Address() + lineBytes,
	}
	spec := streams.KernelSpec{
		Name: "gate", Work: streams.WaitWork, Uses: []streams.Span{made.flags.All()}, Function: found[0],
		Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Argument: launch.Argument(&made.arg),
		Run: func() {
			if !await(word(made.flags, 0), made.arg.count, limit) {
				made.flags.Bytes()[lineBytes] = 1
			}
		},
	}
	streams.Into(&made.resources, &made.kernel)(launch.New(d, spec))
	return made, made.resources.Done()
}

// Shut makes the stream wait until Open. The previous Shut must have been opened, and its stream must have passed
// the gate.
func (g *Gate) Shut(s *streams.Stream) error {
	arg := &g.arg
	if own := g.kernel.Argument(); own != nil {
		arg = &streams.View[gateArgs](own)[0]
	}
	arg.count = atomic.LoadUint64(word(g.flags, 0)) + 1
	return s.Launch(g.kernel)
}

// Open releases the stream. It returns an error if the stream was released before, after the limit.
func (g *Gate) Open() error {
	failed := g.flags.Bytes()[lineBytes] != 0
	atomic.AddUint64(word(g.flags, 0), 1)
	if failed {
		return fmt.Errorf("flags: a gate of device %v was not opened within %v", g.device, g.limit)
	}
	return nil
}

// Close frees the memory of the gate. Closing twice is allowed.
func (g *Gate) Close() error { return g.resources.Close() }

// gateArgs is struct Gate of latency.cu.
type gateArgs struct {
	open   uint64
	count  uint64
	limit  int64
	failed uint64
}

// pingPongArgs is struct FlagPingPong of latency.cu.
type pingPongArgs struct {
	mine, its    uint64
	base         uint64
	rounds, warm int64
	serves       int64
	limit        int64
	took         uint64
}

// latencyProgram has the smallest kernels.
func latencyProgram() kernels.Program {
	return kernels.Program{
		File:    "latency.cu",
		Mirrors: []kernels.Mirror{{Name: "FlagPingPong", Value: pingPongArgs{}}, {Name: "Gate", Value: gateArgs{}}},
	}
}

// NewNothing prepares a launch of an empty kernel.
func NewNothing(c *kernels.Compiler, d *streams.Device) (*streams.Kernel, error) {
	found, err := c.Load(d, latencyProgram(), "nothing")
	if err != nil {
		return nil, err
	}
	return launch.New(d, streams.KernelSpec{
		Name: "nothing", Run: func() {},
		Function: found[0], Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Argument: make([]byte, 8),
	})
}

// yielding waits never sleep, since a sleep may exceed the measured time.
var yielding = poll.Policy{Yields: math.MaxInt}

// await polls until a count has reached a value. It returns false after the limit.
func await(count *uint64, value uint64, limit time.Duration) bool {
	const looks = 64 // polls between two readings of the clock
	for wait := yielding.Begin(); ; {
		for range looks {
			if atomic.LoadUint64(count) >= value {
				return true
			}
		}
		if wait.Pause() > limit {
			return false
		}
	}
}
