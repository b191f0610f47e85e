package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/halox/halox/internal/cuda"
)

// Kind is a backend supported by halox.
type Kind struct {
	Backend Backend // name
	Traits
	Variable string // environment variable with the path of the driver library; "" if there is none

	open func(library string, devices int) (*Platform, error)
}

// Open lists the devices of the backend. library is the path of its driver library; "" searches the default
// locations. devices is the number of devices if the user chooses it, as for CPU devices. On a machine without a
// driver or a device of the backend the error is ErrNoDriver.
func (k Kind) Open(library string, devices int) (*Platform, error) { return k.open(library, devices) }

// cudaKind is the backend of GPUs, through the CUDA driver.
var cudaKind = Kind{
	Backend: CUDA, Traits: cudaTraits, Variable: "HALOX_CUDA",
	open: func(library string, _ int) (*Platform, error) { return CUDAPlatform(library) },
}

var cudaTraits = Traits{Noun: "GPU", Label: "GPU"}

// kinds are the backends. A new backend has its own files and one entry here; the tests of streams add one.
var kinds = []Kind{cudaKind, hostKind}

// Kinds returns the backends in order of preference. The last one is available on every machine.
func Kinds() []Kind { return slices.Clone(kinds) }

// Backends returns the names of the backends, in the order of Kinds.
func Backends() (names []string) {
	for _, k := range kinds {
		names = append(names, string(k.Backend))
	}
	return names
}

// A backend implements the interfaces below and a Platform, which starts a driver for each opened device. Objects
// created by a driver are only passed back to the same backend: memory in Memory.handle, addr and bytes, the
// others unchanged.
//
// Errors are returned as the driver reports them; Device adds the device and the operation. Queued work runs in
// order on its queue and concurrently with other queues. Arguments are checked by Device and Stream, not here.

// driver implements one device.
type driver interface {
	alloc(bytes int64) (*Memory, error) // aligned to RowAlignment
	pinned(bytes int64) (*Memory, error)
	free(m *Memory) error
	usage() (free, total int64, err error)
	host() *hostLedger // of the platform
	queue(p Priority) (queue, error)
	capture(queues []queue) (capture, error) // of streams of its platform, its own stream first
	maxPitch() int64                         // limit in bytes for copies of boxes
	marker(timed bool) (marker, error)
	module(image []byte) (module, error)       // returns an error if kernels are Go functions
	kernel(spec *KernelSpec) (launcher, error) // in the form given by its Traits
	canAccess(peer *Device) (bool, error)      // peer is of the same backend
	enablePeer(peer *Device) error             // peer is of the same backend
	fatal(err error) bool                      // whether the error leaves the device unusable
	close() error
}

// queue implements one stream. Its calls do not allocate.
type queue interface {
	copy(dst, src Span) error
	copyBox(b box) error // has more than one row, and a pitch within the driver's limit
	launch(k launcher) error
	record(m marker) error
	wait(m marker) error
	idle() (bool, error)
	close() error
}

// marker implements one event.
type marker interface {
	done() (bool, error)
	since(start marker) (time.Duration, error) // both timed and done
	close() error
}

// hostTimed is a marker that records the host time at which it was done. The times of other markers are converted,
// see clock.
type hostTimed interface {
	when() (time.Time, error)
}

// launcher is the backend's form of a kernel.
type launcher interface {
	close() error
}

// argued is a launcher with an argument that may be changed between launches.
type argued interface {
	argument() []byte
}

// module implements a module.
type module interface {
	function(name string) (Function, error)
	close() error
}

// capture implements a capture of streams.
type capture interface {
	// stand returns the queue that replaces that of the i-th stream during the capture. It gets boxes only within a
	// device or to and from the host.
	stand(i int) queue
	// end ends the capture, even if it returns an error.
	end() (graph, error)
	// abandon ends the capture without a graph.
	abandon()
}

// graph implements a graph.
type graph interface {
	launch() (at int, err error) // at is the index of the stream that failed
	// close waits at most limit for work that no stream waits for. It does not call the driver of a dead device.
	close(dead bool, limit time.Duration) error
}

// handled is a queue with a handle for vendor libraries.
type handled interface {
	handle() uintptr
}

// entered is a driver whose enter method makes its device current on the calling thread for vendor libraries.
type entered interface {
	enter() error
}

// wrapper is a driver that accepts streams and addresses created by the caller.
type wrapper interface {
	wrapQueue(handle uintptr) queue
}

// Traits describes the devices of a backend. Code that distinguishes devices checks a trait, not the name of the
// backend. The zero value describes an accelerator with its own memory and cores that runs CUDA functions.
type Traits struct {
	Noun  string // for messages: "GPU", "CPU device"
	Label string // prefix of the device number: "GPU", "host"

	// GoKernels means that kernels are Go functions, KernelSpec.Run, and that modules cannot be loaded. Otherwise
	// kernels are CUDA functions, KernelSpec.Function.
	GoKernels bool

	// HostCores means that work runs on CPU cores. Spinning threads, and an extra thread per neighbor, slow the
	// devices down.
	HostCores bool

	// HostMemory means that device memory is host memory. The CPU can access it (Memory.Bytes), kernels of all
	// devices of the platform can access it without EnablePeer, free memory is shared by all devices, and all pairs
	// of devices have equal links.
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

// Version returns the newest CUDA version that the driver supports, such as "13.0"; "" for CPU devices.
func (p *Platform) Version() string { return p.version }

// Open opens the devices with the given ids, or all, concurrently. A device may be opened only once. If one cannot
// be opened, none stays open.
func (p *Platform) Open(ids ...int) ([]*Device, error) {
	if len(ids) == 0 {
		for _, info := range p.infos {
			ids = append(ids, info.ID)
		}
	}
	seen := map[int]bool{}
	for _, id := range ids {
		if seen[id] {
			return nil, fmt.Errorf("streams: device ids: must be distinct, got %d twice", id)
		}
		if id < 0 || id >= len(p.infos) {
			return nil, fmt.Errorf("streams: device id: must be at least 0 and less than %d, got %d", len(p.infos), id)
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
		return nil, &Error{Device: fmt.Sprintf("%s %d", p.infos[id].Backend, id), Doing: "open", Err: err,
			Fatal: cuda.IsSticky(err)}
	}
	return newDevice(p.infos[id], drv), nil
}

// Close releases the platform. Its devices must be closed before.
func (p *Platform) Close() error { return p.stop() }
