package kernels

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/streams"
)

// Gate holds up streams of a device until the host opens it: what is queued behind it then
// runs as fast as the device can, not as fast as the host queues it. A stream holds a
// few hundred launches; to queue more before the gate is open would wait for ever, but for
// the gate's limit.
type Gate struct {
	streams.Closers
	kernel *streams.Kernel
	opened *streams.Memory
	count  *uint64 // in the argument of the launch, or what the host version reads
}

// gateArgs is struct Gate of gate.cu.
type gateArgs struct {
	opened, count uint64
	limit         int64
}

// NewGate makes a gate for the device, which opens by itself after the limit.
func (c *Compiler) NewGate(d *streams.Device, limit time.Duration) (g *Gate, err error) {
	made := &Gate{}
	if made.opened, err = d.AllocPinned(8); err != nil {
		return nil, err
	}
	made.Add(made.opened)
	*word(made.opened, 0) = 0
	if err := made.prepare(c, d, limit); err != nil {
		made.Close()
		return nil, err
	}
	return made, nil
}

func (g *Gate) prepare(c *Compiler, d *streams.Device, limit time.Duration) (err error) {
	spec := streams.KernelSpec{Name: "gate", Uses: []streams.Span{g.opened.All()}, Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}}
	if d.Backend == streams.Host {
		g.count = new(uint64)
		passed := uint64(0)
		spec.Run = func() { passed++; g.await(passed, limit) }
	} else {
		found, err := c.load(d, gateProgram(), "gate")
		if err != nil {
			return err
		}
		spec.Function = found[0]
		spec.Argument = argument(&gateArgs{opened: g.opened.Address(), limit: limit.Nanoseconds()})
	}
	if g.kernel, err = newKernel(d, spec); err != nil {
		return err
	}
	g.Add(g.kernel)
	if a := g.kernel.Argument(); a != nil {
		g.count = &streams.View[uint64](a[unsafe.Offsetof(gateArgs{}.count):][:8])[0]
	}
	return nil
}

// Shut queues the gate on a stream. It is opened once before it is shut again.
func (g *Gate) Shut(s *streams.Stream) error {
	*g.count++
	return s.Launch(g.kernel)
}

// Open lets the stream go on.
func (g *Gate) Open() { atomic.AddUint64(word(g.opened, 0), 1) }

// await is the host version of kernel gate.
func (g *Gate) await(count uint64, limit time.Duration) {
	for start := time.Now(); atomic.LoadUint64(word(g.opened, 0)) < count && time.Since(start) < limit; {
		runtime.Gosched()
	}
}
