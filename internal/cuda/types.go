package cuda

import (
	"fmt"
	"unsafe"
)

// Handles that the driver gave. The zero value of each is no handle.
type (
	// DevicePtr is an address in a device's memory.
	DevicePtr uint64
	// Stream is a queue of work on one device.
	Stream uintptr
	// Event is a point in a stream's work.
	Event uintptr
	// Module is a loaded image of device code.
	Module uintptr
	// Function is a kernel of a module.
	Function uintptr
	// Graph is work with its order, as a capture gave it.
	Graph uintptr
	// GraphExec is a graph that is ready to be launched.
	GraphExec uintptr
)

// SchedFlags say how a host thread waits for the device.
type SchedFlags uint32

// The ways to wait. SchedAuto spins while there are no more contexts than
// processors; SchedBlocking sleeps and leaves the core to others.
const (
	SchedAuto     SchedFlags = 0
	SchedSpin     SchedFlags = 1
	SchedYield    SchedFlags = 2
	SchedBlocking SchedFlags = 4
)

// HostFlags say what pinned host memory is for.
type HostFlags uint32

// HostPortable memory is pinned for all contexts; HostMapped memory is in the
// device's address space too; HostWriteCombined memory is fast for the device
// to read and slow for the host to.
const (
	HostPortable      HostFlags = 1
	HostMapped        HostFlags = 2
	HostWriteCombined HostFlags = 4
)

// EventFlags say what an event can do.
type EventFlags uint32

// EventDefault events carry a time and are spun on. EventBlocking lets
// EventSynchronize sleep. EventNoTiming makes recording and waiting cheaper.
const (
	EventDefault  EventFlags = 0
	EventBlocking EventFlags = 1
	EventNoTiming EventFlags = 2
)

// Dim3 counts blocks of a grid or threads of a block along x, y and z.
type Dim3 struct{ X, Y, Z uint32 }

// Count is the product of the three.
func (d Dim3) Count() uint64 { return uint64(d.X) * uint64(d.Y) * uint64(d.Z) }

// String gives X x Y x Z.
func (d Dim3) String() string { return fmt.Sprintf("%dx%dx%d", d.X, d.Y, d.Z) }

// Extent is the size of a box: the bytes of a row, the rows of a plane, and
// the planes.
type Extent struct{ Width, Height, Depth uint64 }

// Pitched is one end of a copy of a box: where the box begins, and how far
// apart its rows and planes are.
type Pitched struct {
	Host   unsafe.Pointer // pinned host memory, or nil for device memory
	Device DevicePtr      // device memory
	Pitch  uint64         // bytes from one row to the next, at least Extent.Width
	Rows   uint64         // rows from one plane to the next, at least Extent.Height
}
