//go:build !linux || !cgo

package cuda

import "unsafe"

// DefaultLibrary is empty: this build opens no driver.
const DefaultLibrary = ""

// None of these can be made in a build without the binding. Their methods are
// here so that all that uses them compiles.
type (
	// Driver is an opened CUDA driver.
	Driver struct{}
	// Device is one GPU.
	Device struct{}
	// Context is a device's primary context.
	Context struct{}
	// Launch is a prepared kernel launch.
	Launch struct{}
)

// Open returns ErrUnsupported.
func Open(string) (*Driver, error) { return nil, ErrUnsupported }

// NewLaunch returns ErrUnsupported.
func NewLaunch(Function, Dim3, Dim3, uint32, []byte) (*Launch, error) { return nil, ErrUnsupported }

func (*Launch) Arg() []byte { return nil }
func (*Launch) Free()       {}

func (*Launch) SetEarly(bool)       {}
func (*Launch) SetCooperative(bool) {}

func (*Driver) Close() error                { return nil }
func (*Driver) Version() (int, error)       { return 0, ErrUnsupported }
func (*Driver) DeviceCount() (int, error)   { return 0, ErrUnsupported }
func (*Driver) Device(int) (*Device, error) { return nil, ErrUnsupported }

func (*Device) Ordinal() int                                    { return NoDevice }
func (*Device) Name() (string, error)                           { return "", ErrUnsupported }
func (*Device) UUID() (string, error)                           { return "", ErrUnsupported }
func (*Device) PCIBusID() (string, error)                       { return "", ErrUnsupported }
func (*Device) TotalMemory() (uint64, error)                    { return 0, ErrUnsupported }
func (*Device) Attribute(Attribute) (int, error)                { return 0, ErrUnsupported }
func (*Device) CanAccessPeer(*Device) (bool, error)             { return false, ErrUnsupported }
func (*Device) P2PAttribute(P2PAttribute, *Device) (int, error) { return 0, ErrUnsupported }
func (*Device) RetainPrimary(SchedFlags) (*Context, error)      { return nil, ErrUnsupported }

func (*Context) Release() error                                      { return nil }
func (*Context) Device() *Device                                     { return nil }
func (*Context) Enter() error                                        { return ErrUnsupported }
func (*Context) Synchronize() error                                  { return ErrUnsupported }
func (*Context) EnablePeerAccess(*Context) error                     { return ErrUnsupported }
func (*Context) StreamPriorityRange() (int, int, error)              { return 0, 0, ErrUnsupported }
func (*Context) MemInfo() (uint64, uint64, error)                    { return 0, 0, ErrUnsupported }
func (*Context) MemAlloc(uint64) (DevicePtr, error)                  { return 0, ErrUnsupported }
func (*Context) MemFree(DevicePtr) error                             { return ErrUnsupported }
func (*Context) HostAlloc(uint64, HostFlags) (unsafe.Pointer, error) { return nil, ErrUnsupported }
func (*Context) HostFree(unsafe.Pointer) error                       { return ErrUnsupported }
func (*Context) HostDevicePointer(unsafe.Pointer) (DevicePtr, error) { return 0, ErrUnsupported }

func (*Context) MemcpyHtoDAsync(DevicePtr, unsafe.Pointer, uint64, Stream) error {
	return ErrUnsupported
}
func (*Context) MemcpyDtoHAsync(unsafe.Pointer, DevicePtr, uint64, Stream) error {
	return ErrUnsupported
}
func (*Context) MemcpyDtoDAsync(DevicePtr, DevicePtr, uint64, Stream) error { return ErrUnsupported }
func (*Context) MemsetD8Async(DevicePtr, byte, uint64, Stream) error        { return ErrUnsupported }
func (*Context) MemcpyPeerAsync(DevicePtr, *Context, DevicePtr, *Context, uint64, Stream) error {
	return ErrUnsupported
}

func (*Context) Memcpy3DAsync(Pitched, Pitched, Extent, Stream) error { return ErrUnsupported }
func (*Context) Memcpy3DPeerAsync(Pitched, *Context, Pitched, *Context, Extent, Stream) error {
	return ErrUnsupported
}

func (*Context) StreamCreate(int) (Stream, error)           { return 0, ErrUnsupported }
func (*Context) StreamDestroy(Stream) error                 { return ErrUnsupported }
func (*Context) StreamSynchronize(Stream) error             { return ErrUnsupported }
func (*Context) StreamQuery(Stream) (bool, error)           { return false, ErrUnsupported }
func (*Context) StreamWaitEvent(Stream, Event) error        { return ErrUnsupported }
func (*Context) EventCreate(EventFlags) (Event, error)      { return 0, ErrUnsupported }
func (*Context) EventDestroy(Event) error                   { return ErrUnsupported }
func (*Context) EventRecord(Event, Stream) error            { return ErrUnsupported }
func (*Context) EventQuery(Event) (bool, error)             { return false, ErrUnsupported }
func (*Context) EventSynchronize(Event) error               { return ErrUnsupported }
func (*Context) EventElapsed(Event, Event) (float32, error) { return 0, ErrUnsupported }

func (*Context) ModuleLoad([]byte) (Module, error)                       { return 0, ErrUnsupported }
func (*Context) ModuleUnload(Module) error                               { return ErrUnsupported }
func (*Context) ModuleFunction(Module, string) (Function, error)         { return 0, ErrUnsupported }
func (*Context) FunctionAttribute(Function, FuncAttribute) (int, error)  { return 0, ErrUnsupported }
func (*Context) FunctionSetAttribute(Function, FuncAttribute, int) error { return ErrUnsupported }
func (*Context) OccupancyMaxActiveBlocks(Function, int, uint64) (int, error) {
	return 0, ErrUnsupported
}
func (*Context) Launch(*Launch, Stream) error     { return ErrUnsupported }
func (*Context) LaunchLate(*Launch, Stream) error { return ErrUnsupported }

func (*Context) StreamBeginCapture(Stream) error           { return ErrUnsupported }
func (*Context) StreamEndCapture(Stream) (Graph, error)    { return 0, ErrUnsupported }
func (*Context) GraphInstantiate(Graph) (GraphExec, error) { return 0, ErrUnsupported }
func (*Context) GraphUpload(GraphExec, Stream) error       { return ErrUnsupported }
func (*Context) GraphLaunch(GraphExec, Stream) error       { return ErrUnsupported }
func (*Context) GraphExecDestroy(GraphExec) error          { return ErrUnsupported }
func (*Context) GraphDestroy(Graph) error                  { return ErrUnsupported }
