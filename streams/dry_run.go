package streams

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// DryRun returns, for each given device, a device that replaces it and only counts. Its memory takes address space
// but no physical memory, Held returns how much is allocated, and queued work completes at once without effect.
// Kernels are prepared on the real device, which loads modules and rejects invalid launches. Bytes of its memory
// are initially zero. Peer access is that of the real devices, among those given. A device of another dry run may
// be given too. CloseAll closes the devices.
//
// A program that allocates and runs on such devices determines the memory it needs on the real ones.
func DryRun(devices []*Device) []*Device {
	made := map[*Device]*Device{}
	var all []*Device
	next := &atomic.Uint64{}
	next.Store(dryAddress)
	for _, d := range devices {
		if made[d] == nil {
			real := d.Real()
			made[d] = newDevice(d.Info, &dryDriver{driver: real.driver, real: real, next: next})
		}
		all = append(all, made[d])
	}
	for d, dry := range made {
		d.mu.Lock()
		for peer, reached := range d.peers {
			if made[peer] != nil {
				dry.peers[made[peer]] = reached
			}
		}
		d.mu.Unlock()
	}
	return all
}

// IsDry reports whether the device was returned by DryRun.
func (d *Device) IsDry() bool { return d.Real() != d }

// Real returns the device that a device of a DryRun replaces, and any other device itself.
func (d *Device) Real() *Device {
	if dry, ok := d.driver.(*dryDriver); ok {
		return dry.real
	}
	return d
}

// DryFunction returns a function that only devices of a DryRun accept, for kernels that are not compiled yet.
// Properties that depend on the compiled kernel are not checked.
func DryFunction() Function { return dryFunction{} }

type dryFunction struct{}

// ErrNotCompiled is the error of properties of a DryFunction.
var ErrNotCompiled = errors.New("streams: the kernel is not compiled")

// Usage returns an error: the usage is unknown.
func (dryFunction) Usage() (Usage, error) {
	return Usage{}, ErrNotCompiled
}

// AtOnce returns an error: the number is unknown.
func (dryFunction) AtOnce(int, int) (int, error) {
	return 0, ErrNotCompiled
}

// dryAddress is the first address of simulated memory.
const dryAddress = 1 << 40

// dryDriver forwards to the driver of a real device, except for memory and queued work.
type dryDriver struct {
	driver
	real *Device
	next *atomic.Uint64 // address of the next block of any device
}

func (d *dryDriver) alloc(bytes int64) (*Memory, error) {
	if d.real.HostMemory {
		return d.block(bytes, false)
	}
	return &Memory{addr: d.address(bytes)}, nil
}

func (d *dryDriver) pinned(bytes int64) (*Memory, error) { return d.block(bytes, true) }

// block returns memory that the CPU can access.
func (d *dryDriver) block(bytes int64, pinned bool) (m *Memory, err error) {
	m = &Memory{pinned: pinned}
	if m.bytes, err = reserve(bytes); err != nil {
		return nil, err
	}
	if !d.real.HostMemory {
		m.addr = d.address(bytes)
	}
	return m, nil
}

// address returns the device address of a block of the given size.
func (d *dryDriver) address(bytes int64) uint64 {
	const alignment = 512
	size := (uint64(bytes) + alignment - 1) / alignment * alignment
	return d.next.Add(size) - size
}

func (d *dryDriver) free(m *Memory) error {
	bytes := m.bytes
	m.bytes = nil
	return release(bytes)
}

func (d *dryDriver) kernel(spec *KernelSpec) (launcher, error) {
	if _, unknown := spec.Function.(dryFunction); unknown {
		return &dryKernel{slices.Clone(spec.Argument)}, nil
	}
	return d.driver.kernel(spec)
}

func (d *dryDriver) canAccess(peer *Device) (bool, error) { return d.driver.canAccess(peer.Real()) }
func (d *dryDriver) enablePeer(*Device) error             { return nil }
func (d *dryDriver) queue(Priority) (queue, error)        { return dryQueue{}, nil }
func (d *dryDriver) marker(bool) (marker, error)          { return dryMarker{}, nil }
func (d *dryDriver) capture([]queue) (capture, error)     { return dryCapture{}, nil }
func (d *dryDriver) fatal(error) bool                     { return false }
func (d *dryDriver) close() error                         { return nil }

// dryKernel is a launch of a function that is not compiled.
type dryKernel struct{ bytes []byte }

func (d *dryKernel) argument() []byte { return d.bytes }
func (d *dryKernel) close() error     { return nil }

// dryQueue completes all work at once.
type dryQueue struct{}

func (dryQueue) copy(_, _ Span) error  { return nil }
func (dryQueue) copyBox(box) error     { return nil }
func (dryQueue) launch(launcher) error { return nil }
func (dryQueue) record(marker) error   { return nil }
func (dryQueue) wait(marker) error     { return nil }
func (dryQueue) idle() (bool, error)   { return true, nil }
func (dryQueue) close() error          { return nil }

// dryMarker is always done.
type dryMarker struct{}

func (dryMarker) done() (bool, error)                 { return true, nil }
func (dryMarker) since(marker) (time.Duration, error) { return 0, nil }
func (dryMarker) close() error                        { return nil }

// dryCapture returns an empty graph.
type dryCapture struct{}

func (dryCapture) stand(int) queue               { return dryQueue{} }
func (dryCapture) end() (graph, error)           { return dryGraph{}, nil }
func (dryCapture) abandon()                      {}
func (dryGraph) launch() (int, error)            { return 0, nil }
func (dryGraph) close(bool, time.Duration) error { return nil }

type dryGraph struct{}
