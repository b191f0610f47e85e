package streams

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// DryRun returns a device for each one of some of a platform that stands for it and only counts: what is allocated on
// it takes address space and no memory, Held says how much it is, and what is queued is done at once without being
// done. Kernels are made ready as for the device itself, by which modules are loaded, so that what cannot be launched
// there is refused here. Bytes of its memory are zeros at first. It reaches the peers that the device reaches, among
// those given. One for a device of another dry run stands for the same. CloseAll closes the devices.
//
// A program that makes all ready on such devices, and runs, has told what it will hold on the real ones.
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

// IsDry reports whether the device is one of a DryRun.
func (d *Device) IsDry() bool { return d.Real() != d }

// Real returns the device that one of a DryRun stands for, and any other itself.
func (d *Device) Real() *Device {
	if dry, ok := d.driver.(*dryDriver); ok {
		return dry.real
	}
	return d
}

// DryFunction returns a function that only devices of a DryRun take, for kernels that are not compiled yet. What
// the compiled kernel decides is not checked.
func DryFunction() Function { return dryFunction{} }

type dryFunction struct{}

// Usage returns an error: it is not known.
func (dryFunction) Usage() (Usage, error) {
	return Usage{}, errors.New("streams: a kernel that is not compiled")
}

// AtOnce returns an error: it is not known.
func (dryFunction) AtOnce(int, int) (int, error) {
	return 0, errors.New("streams: a kernel that is not compiled")
}

// dryAddress is where memory begins that is not there.
const dryAddress = 1 << 40

// dryDriver does what the driver of a real device does, except for memory and for what is queued.
type dryDriver struct {
	driver
	real *Device
	next *atomic.Uint64 // address, of the next block of any device
}

func (d *dryDriver) alloc(bytes int64) (*Memory, error) {
	if d.real.HostMemory {
		return d.block(bytes, false)
	}
	return &Memory{addr: d.address(bytes)}, nil
}

func (d *dryDriver) pinned(bytes int64) (*Memory, error) { return d.block(bytes, true) }

// block returns memory that the CPU sees.
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

// address returns where a block of so many bytes lies for kernels.
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

// dryKernel is a launch of a function that is not there.
type dryKernel struct{ bytes []byte }

func (d *dryKernel) argument() []byte { return d.bytes }
func (d *dryKernel) close() error     { return nil }

// dryQueue has done all that is queued.
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

// dryCapture makes a graph of nothing.
type dryCapture struct{}

func (dryCapture) stand(int) queue               { return dryQueue{} }
func (dryCapture) end() (graph, error)           { return dryGraph{}, nil }
func (dryCapture) abandon()                      {}
func (dryGraph) launch() (int, error)            { return 0, nil }
func (dryGraph) close(bool, time.Duration) error { return nil }

type dryGraph struct{}
