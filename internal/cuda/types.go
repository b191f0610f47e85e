package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// Handles of the driver. The zero values are not handles.
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
	// Graph is captured work with its dependencies.
	Graph uintptr
	// GraphExec is a graph that is prepared for launches.
	GraphExec uintptr
)

// SchedFlags select how a host thread waits for the device.
type SchedFlags uint32

// The methods of waiting. SchedAuto spins if there are no more contexts than processors; SchedBlocking sleeps.
const (
	SchedAuto     SchedFlags = 0
	SchedSpin     SchedFlags = 1
	SchedBlocking SchedFlags = 4
)

// HostFlags are properties of pinned host memory.
type HostFlags uint32

// HostPortable memory is pinned for all contexts; HostMapped memory is in the
// device's address space too.
const (
	HostPortable HostFlags = 1
	HostMapped   HostFlags = 2
)

// EventFlags are properties of an event.
type EventFlags uint32

// EventDefault events record times, and waits for them spin. EventBlocking makes EventSynchronize sleep. EventNoTiming
// makes recording and waiting cheaper. EventInterprocess, which needs EventNoTiming, allows [Context.EventHandle].
const (
	EventDefault      EventFlags = 0
	EventBlocking     EventFlags = 1
	EventNoTiming     EventFlags = 2
	EventInterprocess EventFlags = 4
)

// Dim3 counts blocks of a grid or threads of a block along x, y and z.
type Dim3 struct{ X, Y, Z uint32 }

// Count returns the product of the three.
func (d Dim3) Count() uint64 { return uint64(d.X) * uint64(d.Y) * uint64(d.Z) }

// String returns X x Y x Z.
func (d Dim3) String() string { return fmt.Sprintf("%dx%dx%d", d.X, d.Y, d.Z) }

// Extent is the size of a box: the bytes of a row, the rows of a plane, and
// the planes.
type Extent struct{ Width, Height, Depth uint64 }

// Pitched is the source or destination of a copy of a box: its start, and the strides of rows and planes.
type Pitched struct {
	Host   unsafe.Pointer // pinned host memory, or nil for device memory
	Device DevicePtr      // device memory
	Pitch  uint64         // bytes from one row to the next, at least Extent.Width
	Rows   uint64         // rows from one plane to the next, at least Extent.Height
}

// Attribute is a property of a device, see [Device.Attribute].
type Attribute int32

// Device attributes that halox or its tests read. Sizes are in bytes, the bus width in bits.
const (
	AttrWarpSize               Attribute = 10
	AttrMaxPitch               Attribute = 11
	AttrMultiprocessorCount    Attribute = 16
	AttrMemoryBusWidth         Attribute = 37
	AttrL2CacheSize            Attribute = 38
	AttrAsyncEngineCount       Attribute = 40
	AttrComputeCapabilityMajor Attribute = 75
	AttrComputeCapabilityMinor Attribute = 76
	AttrMaxSharedPerBlockOptin Attribute = 97
)

// P2PAttribute is a property of a pair of devices, see [Device.P2PAttribute].
type P2PAttribute int32

// P2PNativeAtomics is 1 if atomics work over the link, 0 if not.
const P2PNativeAtomics P2PAttribute = 3

// FuncAttribute is a property of a kernel, see [Context.FunctionAttribute].
type FuncAttribute int32

// Function attributes. Sizes are in bytes: static shared memory per block, local memory (where spills go) per thread,
// dynamic shared memory per block.
const (
	FuncMaxThreadsPerBlock FuncAttribute = 0
	FuncSharedSize         FuncAttribute = 1
	FuncLocalSize          FuncAttribute = 3
	FuncRegisters          FuncAttribute = 4
	FuncMaxDynamicShared   FuncAttribute = 8
	FuncPreferredCarveout  FuncAttribute = 9
)

// Code is a result of the driver, numbered as the driver numbers it. It is an
// error, so that errors.Is(err, cuda.CodeOutOfMemory) works on any error that
// wraps an [*Error].
type Code int32

// The codes that halox or its user can handle.
const (
	CodeInvalidValue       Code = 1
	CodeOutOfMemory        Code = 2
	CodeDeinitialized      Code = 4
	CodeStubLibrary        Code = 34
	CodeNoDevice           Code = 100
	CodeInvalidDevice      Code = 101
	CodeInvalidImage       Code = 200
	CodeInvalidContext     Code = 201
	CodeNoBinaryForGPU     Code = 209
	CodeECCUncorrectable   Code = 214
	CodePeerUnsupported    Code = 217
	CodeInvalidPTX         Code = 218
	CodeNVLinkError        Code = 220
	CodeUnsupportedPTX     Code = 222
	CodeInvalidHandle      Code = 400
	CodeIllegalState       Code = 401
	CodeNotFound           Code = 500
	CodeNotReady           Code = 600
	CodeIllegalAddress     Code = 700
	CodeLaunchTimeout      Code = 702
	CodePeerAlreadyEnabled Code = 704
	CodePrimaryActive      Code = 708
	CodeContextDestroyed   Code = 709
	CodeAssert             Code = 710
	CodeTooManyPeers       Code = 711
	CodeHardwareStack      Code = 714
	CodeIllegalInstruction Code = 715
	CodeMisalignedAddress  Code = 716
	CodeInvalidAddrSpace   Code = 717
	CodeInvalidPC          Code = 718
	CodeLaunchFailed       Code = 719
	CodeCooperativeTooBig  Code = 720
	CodeDriverMismatch     Code = 803
	CodeMPSTerminated      Code = 807
	CodeCaptureUnsupported Code = 900
	CodeCaptureInvalidated Code = 901
	CodeCaptureUnmatched   Code = 903
	CodeCaptureUnjoined    Code = 904
	CodeCaptureIsolation   Code = 905
	CodeCapturedEvent      Code = 907
	CodeUnknown            Code = 999
)

// Error returns the number; [Error] has the driver's description.
func (c Code) Error() string { return fmt.Sprintf("CUDA error %d", int32(c)) }

// Sticky reports whether the context is lost, and with it the device for the rest of the process: every later call
// fails.
func (c Code) Sticky() bool {
	switch c {
	case CodeECCUncorrectable, CodeNVLinkError,
		CodeIllegalAddress, CodeLaunchTimeout, CodeContextDestroyed, CodeAssert,
		CodeHardwareStack, CodeIllegalInstruction, CodeMisalignedAddress,
		CodeInvalidAddrSpace, CodeInvalidPC, CodeLaunchFailed,
		CodeMPSTerminated, CodeUnknown:
		return true
	}
	return false
}

var (
	// ErrNoDriver means that the driver library could not be opened, or found no device. In the second case the error
	// is also [CodeNoDevice].
	ErrNoDriver = errors.New("no usable CUDA driver")

	// ErrNoLibrary is an ErrNoDriver: the driver library could not be opened.
	ErrNoLibrary = fmt.Errorf("%w: cannot open its library", ErrNoDriver)
)

// NoDevice is the value of [Error.Device] for calls that concern no single device.
const NoDevice = -1

// Error is a failed driver call. If a call could not enter its context, the error still names the call.
type Error struct {
	Call   string // the driver's function, without its version suffix
	Code   Code
	Name   string // the driver's name of the code, CUDA_ERROR_...
	Text   string // the driver's description, and its log if it kept one
	Device int    // ordinal, or NoDevice
}

// Error returns the device, the call and the code.
func (e *Error) Error() string {
	where := ""
	if e.Device != NoDevice {
		where = fmt.Sprintf("device %d: ", e.Device)
	}
	return fmt.Sprintf("%s%s: %s (%d): %s", where, e.Call, e.Name, int32(e.Code), e.Text)
}

// Is matches the error's [Code].
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// IsSticky reports whether err holds an [*Error] with a sticky code, see
// [Code.Sticky].
func IsSticky(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code.Sticky()
}

// Limits of launches on all devices that CUDA supports.
const (
	MaxGridX        = 1<<31 - 1 // blocks along x
	MaxGridYZ       = 1<<16 - 1 // blocks along y, and along z
	MaxBlockThreads = 1024      // threads of a block, and along x or y
	MaxBlockZ       = 64        // threads along z
	MaxArgBytes     = 4096      // bytes of kernel parameters
)

// CheckGeometry rejects a geometry that no device can launch; the error has the numbers and the limit. [NewLaunch]
// calls it.
func CheckGeometry(grid, block Dim3, argBytes int) error {
	switch {
	case grid.Count() == 0 || block.Count() == 0:
		return fmt.Errorf("launch: grid and block must not be empty, got %v blocks of %v threads", grid, block)
	case grid.X > MaxGridX || grid.Y > MaxGridYZ || grid.Z > MaxGridYZ:
		return fmt.Errorf("launch of a grid of %v blocks: must be at most %dx%dx%d",
			grid, MaxGridX, MaxGridYZ, MaxGridYZ)
	case block.X > MaxBlockThreads || block.Y > MaxBlockThreads || block.Z > MaxBlockZ:
		return fmt.Errorf("launch of blocks of %v threads: must be at most %dx%dx%d",
			block, MaxBlockThreads, MaxBlockThreads, MaxBlockZ)
	case block.Count() > MaxBlockThreads:
		return fmt.Errorf("launch of blocks of %v = %d threads: must be at most %d",
			block, block.Count(), MaxBlockThreads)
	case argBytes > MaxArgBytes:
		return fmt.Errorf("launch with an argument of %d bytes: must be at most %d", argBytes, MaxArgBytes)
	}
	return nil
}
