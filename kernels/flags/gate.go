package flags

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// Gate holds a stream until the host opens it: what is queued behind it then runs as fast
// as the device can, not as fast as the host queues it. Kernels behind it have run before:
// what a driver does at the first launch of one may wait for the gate.
type Gate struct {
	resources streams.Resources
	device    *streams.Device
	limit     time.Duration
	flags     *streams.Memory // pinned: how often it was opened, and whether a wait was in vain
	kernel    *streams.Kernel
	arg       gateArgs // of the Go form; the CUDA form has its own
}

// NewGate makes a gate for streams of the device, one at a time. It opens by itself after
// the limit; that is an error of Open.
func NewGate(c *kernels.Compiler, d *streams.Device, limit time.Duration) (g *Gate, err error) {
	made := &Gate{device: d, limit: limit}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if made.flags, err = d.AllocPinned(2 * lineBytes); err != nil {
		return nil, err
	}
	made.resources.Add(made.flags)
	clear(made.flags.Bytes())
	made.arg = gateArgs{open: made.flags.Address(), limit: limit.Nanoseconds(), failed: made.flags.Address() + lineBytes}
	found, err := c.Load(d, latencyProgram(), "gate")
	if err != nil {
		return nil, err
	}
	spec := streams.KernelSpec{
		Name: "gate", Work: streams.WaitWork, Uses: []streams.Span{made.flags.All()}, Function: found[0],
		Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Argument: launch.Argument(&made.arg),
		Run: func() {
			if !Await(Word(made.flags, 0), made.arg.count, limit) {
				made.flags.Bytes()[lineBytes] = 1
			}
		},
	}
	if made.kernel, err = launch.New(d, spec); err != nil {
		return nil, err
	}
	made.resources.Add(made.kernel)
	return made, nil
}

// Shut has the stream wait until Open. The gate that was shut before has been opened, and
// its stream has passed it.
func (g *Gate) Shut(s *streams.Stream) error {
	arg := &g.arg
	if own := g.kernel.Argument(); own != nil {
		arg = &streams.View[gateArgs](own)[0]
	}
	arg.count = atomic.LoadUint64(Word(g.flags, 0)) + 1
	return s.Launch(g.kernel)
}

// Open lets the stream go on. It is an error if that had gone on before by itself.
func (g *Gate) Open() error {
	failed := g.flags.Bytes()[lineBytes] != 0
	atomic.AddUint64(Word(g.flags, 0), 1)
	if failed {
		return fmt.Errorf("flags: a gate of device %v was not opened within %v", g.device, g.limit)
	}
	return nil
}

// Close frees what it holds. Closing twice is no error.
func (g *Gate) Close() error { return g.resources.Close() }
