package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Kind is a backend that halox knows.
type Kind struct {
	Backend Backend
	Traits
	Variable string // of the environment, which names the library of its driver; "" if it has none

	open func(library string, devices int) (*Platform, error)
}

// Open lists the devices of the backend. The library of its driver is found by itself where
// it is "". devices is how many there are to be where that is for the user to say, as with
// cores of the host. On a machine without a driver or a device of the backend the error is
// ErrNoDriver.
func (k Kind) Open(library string, devices int) (*Platform, error) { return k.open(library, devices) }

// cudaKind is GPUs, through the CUDA driver.
var cudaKind = Kind{
	Backend: CUDA, Traits: cudaTraits, Variable: "HALOX_CUDA",
	open: func(library string, _ int) (*Platform, error) { return CUDAPlatform(library) },
}

var cudaTraits = Traits{Noun: "GPU", Label: "GPU"}

// kinds are the backends. A new one has files of its own and a line here; the tests of streams
// add one.
var kinds = []Kind{cudaKind, hostKind}

// Kinds returns the backends, in the order in which one is looked for where the user has no
// wish. The last one is on every machine.
func Kinds() []Kind { return slices.Clone(kinds) }

// Backends returns the names of the backends, in the order of Kinds.
func Backends() (names []string) {
	for _, k := range kinds {
		names = append(names, string(k.Backend))
	}
	return names
}

// What a backend gives, besides its Kind: a Platform, which starts a driver for each device
// that is opened. All that a driver makes is of that backend, and comes back to it alone:
// memory in Memory.handle, addr and bytes, the others as they are.
//
// Errors come back as the driver has them; Device says on which device and at what. What is
// queued runs in order on its queue and beside other queues. Nothing here checks arguments:
// Device and Stream did.

// driver is what a backend does for one device.
type driver interface {
	alloc(bytes int64) (*Memory, error) // aligned to RowAlignment
	pinned(bytes int64) (*Memory, error)
	free(m *Memory) error
	usage() (free, total int64, err error)
	host() *hostLedger // of the platform
	queue(p Priority) (queue, error)
	capture(queues []queue) (capture, error) // of streams of its platform, the first its own
	maxPitch() int64                         // of copies of boxes
	marker(timed bool) (marker, error)
	module(image []byte) (module, error)       // an error where kernels are Go functions
	kernel(spec *KernelSpec) (launcher, error) // of the form that its Traits say
	canAccess(peer *Device) (bool, error)      // of the same backend
	enablePeer(peer *Device) error             // likewise
	fatal(err error) bool                      // whether the device is of no use after an error of its own
	close() error
}

// queue is what a backend does for one stream. Its calls allocate nothing.
type queue interface {
	copy(dst, src Span) error
	copyBox(b box) error // with more than one row, and as the driver's pitch allows
	launch(k launcher) error
	record(m marker) error
	wait(m marker) error
	idle() (bool, error)
	close() error
}

// marker is what a backend does for one event.
type marker interface {
	done() (bool, error)
	since(start marker) (time.Duration, error) // both timed, and done
	close() error
}

// hostTimed is a marker that knows when it was done by the clock of the host. Others are
// compared with that clock, see clock.
type hostTimed interface {
	when() (time.Time, error)
}

// launcher is a backend's form of a kernel.
type launcher interface {
	close() error
}

// argued is a launcher with an argument that may be changed between two launches.
type argued interface {
	argument() []byte
}

// module is what a backend does for a module.
type module interface {
	function(name string) (Function, error)
	close() error
}

// capture is what a backend does for streams while they are being captured.
type capture interface {
	// stand returns what stands for the queue of the i-th stream meanwhile. Of a box it
	// is asked for copies within a device or to and from the host alone.
	stand(i int) queue
	// end ends it, also where it fails.
	end() (graph, error)
	// abandon ends it without a graph.
	abandon()
}

// graph is what a backend does for one graph.
type graph interface {
	launch() (at int, err error) // at is the stream that failed
	// close waits, not longer than limit, for what no stream waits for. The driver of a
	// dead device is not asked.
	close(dead bool, limit time.Duration) error
}

// handled is a queue that libraries of the vendor take.
type handled interface {
	handle() uintptr
}

// entered is a driver whose device is that of the calling thread for libraries of the vendor, once enter was called.
type entered interface {
	enter() error
}

// wrapper is a driver that takes streams and addresses of the caller's.
type wrapper interface {
	wrapQueue(handle uintptr) queue
}

// Traits is what a backend says of its devices. Who has to tell kinds of devices apart asks
// for a trait, never for the name of the backend. The zero value is that of an accelerator:
// it runs CUDA functions, in memory and on cores of its own.
type Traits struct {
	Noun  string // what a device is: "GPU", "host device"
	Label string // what a device is called before its number: "GPU", "host"

	// Kernels are Go functions, KernelSpec.Run. Nothing is compiled for the device, and it
	// loads no modules. Else they are CUDA functions, KernelSpec.Function.
	GoKernels bool

	// Work runs on cores of the host. A thread that spins takes them from the devices, and so
	// does one more thread for each neighbour.
	HostCores bool

	// Memory of a device is memory of the host. The CPU sees it (Memory.Bytes), kernels of all
	// devices of the platform reach it without EnablePeer, what is free is free for all devices
	// together, and all pairs of devices are linked alike.
	HostMemory bool
}

// Platform is a backend with its devices.
type Platform struct {
	infos   []Info
	version string
	start   func(info Info) (driver, error)
	stop    func() error
}

// Devices describes the devices, in the order of their ids.
func (p *Platform) Devices() []Info { return p.infos }

// Version returns the newest CUDA version that the driver supports, as "13.0";
// "" for host devices.
func (p *Platform) Version() string { return p.version }

// Open opens the devices with the given ids, or all, side by side. A device may be opened
// once.
func (p *Platform) Open(ids ...int) ([]*Device, error) {
	if len(ids) == 0 {
		for _, info := range p.infos {
			ids = append(ids, info.ID)
		}
	}
	seen := map[int]bool{}
	for _, id := range ids {
		if seen[id] {
			return nil, fmt.Errorf("streams: device %d is named twice", id)
		}
		if id < 0 || id >= len(p.infos) {
			return nil, fmt.Errorf("streams: there is no device %d; there are %d, counted from 0", id, len(p.infos))
		}
		seen[id] = true
	}
	devices, errs := make([]*Device, len(ids)), make([]error, len(ids))
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() { devices[i], errs[i] = p.open(id) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, errors.Join(err, CloseAll(devices))
		}
	}
	return devices, nil
}

func (p *Platform) open(id int) (*Device, error) {
	drv, err := p.start(p.infos[id])
	if err != nil {
		return nil, fmt.Errorf("streams: open device %d: %w", id, err)
	}
	return newDevice(p.infos[id], drv), nil
}

// Close releases the platform. Its devices must be closed before.
func (p *Platform) Close() error { return p.stop() }
