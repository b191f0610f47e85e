package streams

import (
	"slices"
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

// kinds are the backends. A new one has files of its own and a line here; the tests of streams
// add one.
var kinds = []Kind{cudaKind, hostKind}

// Kinds returns the backends, in the order in which one is looked for where the user has no
// wish. The last one is on every machine.
func Kinds() []Kind { return slices.Clone(kinds) }

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
