//go:build linux && cgo

package streams

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
)

// CUDAPlatform opens the CUDA driver and lists its GPUs. If library is "", the library is found by its soname. On a
// machine without a driver or GPU the error is ErrNoDriver. If the library cannot be opened, or library is not "" in a
// build that cannot open it, the error is also ErrNoLibrary. The error of a failed call of the driver is ErrNotStarted.
func CUDAPlatform(library string) (p *Platform, err error) {
	defer func() {
		if _, called := errors.AsType[*cuda.Error](err); called && !errors.Is(err, ErrNoDriver) {
			err = fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
	}()
	drv, err := cuda.Open(library)
	if err != nil {
		return nil, err
	}
	p = &Platform{stop: drv.Close}
	ledger := newHostLedger(false)
	p.start = func(info Info) (driver, error) { return openCUDA(drv, info.ID, ledger) }
	if p.infos, err = cudaInfos(drv); err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	v, err := drv.Version()
	if err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	p.version = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	return p, nil
}

// cudaInfos describes all GPUs.
func cudaInfos(drv *cuda.Driver) ([]Info, error) {
	n, err := drv.DeviceCount()
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: the driver shows no GPU", ErrNoDriver)
	}
	var infos []Info
	for id := range n {
		info, err := cudaInfo(drv, id)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func cudaInfo(drv *cuda.Driver, id int) (Info, error) {
	info := Info{Backend: CUDA, Traits: cudaTraits, ID: id}
	d, err := drv.Device(id)
	if err != nil {
		return info, err
	}
	var memory uint64
	var major, minor, shared int
	for _, ask := range []func() error{
		func() (err error) { info.Name, err = d.Name(); return },
		func() (err error) { info.PCIBusID, err = d.PCIBusID(); return },
		func() (err error) { info.UUID, err = d.UUID(); return },
		func() (err error) { memory, err = d.TotalMemory(); return },
		func() (err error) { major, err = d.Attribute(cuda.AttrComputeCapabilityMajor); return },
		func() (err error) { minor, err = d.Attribute(cuda.AttrComputeCapabilityMinor); return },
		func() (err error) { info.Cores, err = d.Attribute(cuda.AttrMultiprocessorCount); return },
		func() (err error) { shared, err = d.Attribute(cuda.AttrMaxSharedPerBlockOptin); return },
	} {
		if err := ask(); err != nil {
			return info, err
		}
	}
	info.Memory, info.Shared = int64(memory), int64(shared)
	info.Arch = fmt.Sprintf("sm_%d%d", major, minor)
	return info, nil
}

// cudaDriver is the driver of one GPU: its primary context.
type cudaDriver struct {
	ctx             *cuda.Context
	ledger          *hostLedger
	lowest, highest int  // stream priorities
	pitch           int  // largest pitch of a copy, in bytes
	early           bool // supports programmatic dependent launches
	announcing      sync.Mutex
}

func openCUDA(drv *cuda.Driver, id int, ledger *hostLedger) (driver, error) {
	d, err := drv.Device(id)
	if err != nil {
		return nil, err
	}
	ctx, err := d.RetainPrimary(cuda.SchedBlocking)
	if err != nil {
		return nil, err
	}
	c := &cudaDriver{ctx: ctx, ledger: ledger}
	if c.lowest, c.highest, err = ctx.StreamPriorityRange(); err != nil {
		return nil, errors.Join(err, ctx.Release())
	}
	if c.pitch, err = d.Attribute(cuda.AttrMaxPitch); err != nil {
		return nil, errors.Join(err, ctx.Release())
	}
	const hopper = 9
	major, err := d.Attribute(cuda.AttrComputeCapabilityMajor)
	if err != nil {
		return nil, errors.Join(err, ctx.Release())
	}
	c.early = major >= hopper
	return c, nil
}

func (c *cudaDriver) maxPitch() int64 { return int64(c.pitch) }

func (c *cudaDriver) canAccess(peer *Device) (bool, error) {
	return c.ctx.Device().CanAccessPeer(peer.driver.(*cudaDriver).ctx.Device())
}

func (c *cudaDriver) enablePeer(peer *Device) error {
	return c.ctx.EnablePeerAccess(peer.driver.(*cudaDriver).ctx)
}

// fatal reports whether the error leaves the context unusable.
func (c *cudaDriver) fatal(err error) bool { return cuda.IsSticky(err) }

func (c *cudaDriver) enter() error { return c.ctx.Enter() }

func (c *cudaDriver) close() error { return c.ctx.Release() }

// cudaModule is a module in a context.
type cudaModule struct {
	driver *cudaDriver
	module cuda.Module
}

func (c *cudaDriver) module(image []byte) (module, error) {
	m, err := c.ctx.ModuleLoad(image)
	return &cudaModule{c, m}, err
}

func (c *cudaModule) close() error { return c.driver.ctx.ModuleUnload(c.module) }

// cudaFunction is a kernel in a context.
type cudaFunction struct {
	driver *cudaDriver
	fn     cuda.Function
}

func (c *cudaModule) function(name string) (Function, error) {
	f, err := c.driver.ctx.ModuleFunction(c.module, name)
	return &cudaFunction{c.driver, f}, err
}

// Usage queries the driver.
func (c *cudaFunction) Usage() (Usage, error) {
	var u Usage
	for _, ask := range []struct {
		to   *int
		attr cuda.FuncAttribute
	}{
		{&u.Registers, cuda.FuncRegisters}, {&u.Local, cuda.FuncLocalSize},
		{&u.Shared, cuda.FuncSharedSize}, {&u.Threads, cuda.FuncMaxThreadsPerBlock},
	} {
		v, err := c.driver.ctx.FunctionAttribute(c.fn, ask.attr)
		if err != nil {
			return u, err
		}
		*ask.to = v
	}
	return u, nil
}

// AtOnce queries the driver.
func (c *cudaFunction) AtOnce(threads, shared int) (int, error) {
	if err := c.driver.announce(c.fn, shared); err != nil {
		return 0, err
	}
	return c.driver.ctx.OccupancyMaxActiveBlocks(c.fn, threads, uint64(shared))
}

// cudaKernel is a prepared launch.
type cudaKernel struct{ launch *cuda.Launch }

func (c *cudaKernel) argument() []byte { return c.launch.Arg() }

func (c *cudaKernel) close() error { c.launch.Free(); return nil }

func (c *cudaDriver) kernel(spec *KernelSpec) (launcher, error) {
	f, ok := spec.Function.(*cudaFunction)
	if !ok {
		return nil, errors.New("must have a CUDA function")
	}
	if f.driver.ctx != c.ctx {
		return nil, errors.New("function must be loaded on the same device")
	}
	grid, err := dim3(spec.Grid)
	if err != nil {
		return nil, err
	}
	block, err := dim3(spec.Block)
	if err != nil {
		return nil, err
	}
	if err := c.announce(f.fn, spec.Shared); err != nil {
		return nil, err
	}
	if spec.Cooperative {
		if err := c.holdsAtOnce(f, spec); err != nil {
			return nil, err
		}
	}
	l, err := cuda.NewLaunch(f.fn, grid, block, uint32(spec.Shared), spec.Argument)
	if err != nil {
		return nil, err
	}
	l.SetEarly(spec.Early && c.early && !spec.Cooperative)
	l.SetCooperative(spec.Cooperative)
	return &cudaKernel{l}, nil
}

// holdsAtOnce returns an error unless all thread blocks of a launch can be resident at once.
func (c *cudaDriver) holdsAtOnce(f *cudaFunction, spec *KernelSpec) error {
	threads := spec.Block[0] * spec.Block[1] * spec.Block[2]
	each, err := f.AtOnce(threads, spec.Shared)
	if err != nil {
		return err
	}
	cores, err := c.ctx.Device().Attribute(cuda.AttrMultiprocessorCount)
	if err != nil {
		return err
	}
	if blocks := int64(spec.Grid[0]) * int64(spec.Grid[1]) * int64(spec.Grid[2]); blocks > int64(each)*int64(cores) {
		return fmt.Errorf("cooperative launch of %d thread blocks with %d threads and %d bytes of shared memory each: "+
			"must be at most %d blocks: %d on each of %d multiprocessors",
			blocks, threads, spec.Shared, each*cores, each, cores)
	}
	return nil
}

// announce raises the limit of dynamic shared memory of a function, if the static and dynamic shared memory of a
// launch exceed the default. It never lowers the limit, since other launches of the function may be prepared.
func (c *cudaDriver) announce(f cuda.Function, bytes int) error {
	own, err := c.ctx.FunctionAttribute(f, cuda.FuncSharedSize)
	if err != nil || bytes+own <= defaultShared {
		return err
	}
	c.announcing.Lock()
	defer c.announcing.Unlock()
	have, err := c.ctx.FunctionAttribute(f, cuda.FuncMaxDynamicShared)
	if err != nil || have > defaultShared && have >= bytes {
		return err
	}
	return c.ctx.FunctionSetAttribute(f, cuda.FuncMaxDynamicShared, max(have, bytes))
}

// defaultShared is the shared memory in bytes, static and dynamic, that a thread block may use by default.
const defaultShared = 48 << 10

func dim3(v [3]int) (cuda.Dim3, error) {
	for _, n := range v {
		if n < 1 || int64(n) > 1<<31-1 {
			return cuda.Dim3{}, fmt.Errorf("launch geometry: must be between 1 and 2^31-1 per axis, got %v", v)
		}
	}
	return cuda.Dim3{X: uint32(v[0]), Y: uint32(v[1]), Z: uint32(v[2])}, nil
}

// cudaEvent is an event in a context.
type cudaEvent struct {
	ctx   *cuda.Context
	event cuda.Event
}

func (c *cudaDriver) marker(timed bool) (marker, error) {
	flags := cuda.EventNoTiming
	if timed {
		flags = 0
	}
	e, err := c.ctx.EventCreate(flags)
	return &cudaEvent{c.ctx, e}, err
}

func (c *cudaEvent) since(start marker) (time.Duration, error) {
	ms, err := c.ctx.EventElapsed(start.(*cudaEvent).event, c.event)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

func (c *cudaEvent) done() (bool, error) { return c.ctx.EventQuery(c.event) }
func (c *cudaEvent) close() error        { return c.ctx.EventDestroy(c.event) }

// cudaQueue is a stream in a context.
type cudaQueue struct {
	ctx    *cuda.Context
	stream cuda.Stream
}

func (c *cudaDriver) queue(p Priority) (queue, error) {
	priority := c.lowest
	if p == Urgent {
		priority = c.highest
	}
	s, err := c.ctx.StreamCreate(priority)
	return &cudaQueue{c.ctx, s}, err
}

// wrappedQueue is a stream owned by the caller, who destroys it.
type wrappedQueue struct{ cudaQueue }

func (*wrappedQueue) close() error { return nil }

func (c *cudaDriver) wrapQueue(handle uintptr) queue {
	return &wrappedQueue{cudaQueue{c.ctx, cuda.Stream(handle)}}
}

// copy selects the driver call by the location of source and destination.
func (c *cudaQueue) copy(dst, src Span) error {
	n := uint64(dst.Length)
	to, from := dst.Memory, src.Memory
	a, b, err := cudaEnds(to, from)
	switch {
	case err != nil:
		return err
	case to.pinned:
		return c.ctx.MemcpyDtoHAsync(unsafe.Pointer(&to.bytes[dst.Offset]), cuda.DevicePtr(src.Address()), n, c.stream)
	case from.pinned:
		return c.ctx.MemcpyHtoDAsync(cuda.DevicePtr(dst.Address()), unsafe.Pointer(&from.bytes[src.Offset]), n,
			c.stream)
	case a == b:
		return c.ctx.MemcpyDtoDAsync(cuda.DevicePtr(dst.Address()), cuda.DevicePtr(src.Address()), n, c.stream)
	}
	return c.ctx.MemcpyPeerAsync(cuda.DevicePtr(dst.Address()), a.ctx, cuda.DevicePtr(src.Address()), b.ctx, n,
		c.stream)
}

// copyBox uses the 3-D calls for all boxes: a 2-D box has one plane.
func (c *cudaQueue) copyBox(b box) error {
	to, from := b.dst.Span.Memory, b.src.Span.Memory
	a, z, err := cudaEnds(to, from)
	if err != nil {
		return err
	}
	n := cuda.Extent{Width: uint64(b.width), Height: uint64(b.height), Depth: uint64(b.depth)}
	dst, src := b.dst.cuda(b), b.src.cuda(b)
	if to.pinned || from.pinned || a == z {
		return c.ctx.Memcpy3DAsync(dst, src, n, c.stream)
	}
	return c.ctx.Memcpy3DPeerAsync(dst, a.ctx, src, z.ctx, n, c.stream)
}

// cudaEnds returns the drivers of both ends of a copy.
func cudaEnds(to, from *Memory) (a, b *cudaDriver, err error) {
	a, ok1 := to.device.driver.(*cudaDriver)
	b, ok2 := from.device.driver.(*cudaDriver)
	switch {
	case !ok1 || !ok2: // pinned memory of CPU devices is Go memory
		return nil, nil, errors.New("source and destination: must be GPU memory or memory pinned by a GPU")
	case to.pinned && from.pinned:
		return nil, nil, errors.New("source and destination: one must be GPU memory")
	}
	return a, b, nil
}

// cuda returns one end of b in the form of the driver.
func (p Pitched) cuda(b box) cuda.Pitched {
	m, first := p.Span.Memory, p.Span.Offset+p.Offset
	end := cuda.Pitched{Pitch: uint64(p.Pitch), Rows: uint64(b.height)}
	if b.depth > 1 {
		end.Rows = uint64(p.Plane / p.Pitch)
	}
	if m.pinned {
		end.Host = unsafe.Pointer(&m.bytes[first])
	} else {
		end.Device = cuda.DevicePtr(m.addr + uint64(first))
	}
	return end
}

func (c *cudaQueue) launch(k launcher) error {
	return c.ctx.Launch(k.(*cudaKernel).launch, c.stream)
}

func (c *cudaQueue) record(m marker) error { return c.ctx.EventRecord(m.(*cudaEvent).event, c.stream) }

func (c *cudaQueue) wait(m marker) error {
	e, ok := m.(*cudaEvent)
	if !ok {
		return errors.New("the event must belong to a GPU")
	}
	return c.ctx.StreamWaitEvent(c.stream, e.event)
}

func (c *cudaQueue) handle() uintptr { return uintptr(c.stream) }

func (c *cudaQueue) idle() (bool, error) { return c.ctx.StreamQuery(c.stream) }

func (c *cudaQueue) close() error { return c.ctx.StreamDestroy(c.stream) }

// cudaCapture is a capture of streams of GPUs.
type cudaCapture struct{ queues []*cudaQueue }

func (c *cudaDriver) capture(queues []queue) (capture, error) {
	all := &cudaCapture{}
	for _, q := range queues {
		switch q := q.(type) {
		case *cudaQueue:
			all.queues = append(all.queues, q)
		case *wrappedQueue:
			all.queues = append(all.queues, &q.cudaQueue)
		default:
			return nil, errors.New("all streams must belong to GPUs")
		}
	}
	origin := all.queues[0]
	return all, origin.ctx.StreamBeginCapture(origin.stream)
}

func (c *cudaCapture) stand(i int) queue { return &cudaCaptured{cudaQueue: c.queues[i]} }

// end returns a graph that is ready to be launched, also on the device.
func (c *cudaCapture) end() (graph, error) {
	origin := c.queues[0]
	captured, err := origin.ctx.StreamEndCapture(origin.stream)
	if err != nil {
		return nil, err
	}
	exec, err := origin.ctx.GraphInstantiate(captured)
	err = errors.Join(err, origin.ctx.GraphDestroy(captured))
	if exec == 0 {
		return nil, err
	}
	g := &cudaGraph{origin, exec}
	if err == nil {
		err = origin.ctx.GraphUpload(exec, origin.stream)
	}
	if err != nil {
		return nil, errors.Join(err, g.close(false, 0))
	}
	return g, nil
}

// abandon ends the capture. The driver reports an error for streams that do not join the origin, but releases
// them.
func (c *cudaCapture) abandon() {
	origin := c.queues[0]
	if captured, err := origin.ctx.StreamEndCapture(origin.stream); err == nil {
		origin.ctx.GraphDestroy(captured)
	}
}

// cudaCaptured replaces the queue of a stream that is being captured.
type cudaCaptured struct {
	*cudaQueue
	afterKernel bool // the last work on the stream is a kernel, and no event was waited for since
}

// launch lets a kernel start early only if its sole predecessor is a kernel of the same stream, which is what an
// edge between two graph nodes can express. With copies or kernels of other devices among the predecessors, the
// behavior is not documented.
func (c *cudaCaptured) launch(k launcher) error {
	launch := c.ctx.LaunchLate
	if c.afterKernel {
		launch = c.ctx.Launch
	}
	c.afterKernel = true
	return launch(k.(*cudaKernel).launch, c.stream)
}

// copy treats a peer like the same device, which needs peer access: the driver does not capture copies between
// contexts.
func (c *cudaCaptured) copy(dst, src Span) error {
	c.afterKernel = false
	to, from := dst.Memory, src.Memory
	if to.device == from.device || to.pinned || from.pinned {
		return c.cudaQueue.copy(dst, src)
	}
	if _, _, err := cudaEnds(to, from); err != nil {
		return err
	}
	return c.ctx.MemcpyDtoDAsync(cuda.DevicePtr(dst.Address()), cuda.DevicePtr(src.Address()), uint64(dst.Length),
		c.stream)
}

func (c *cudaCaptured) copyBox(b box) error {
	c.afterKernel = false
	return c.cudaQueue.copyBox(b)
}

func (c *cudaCaptured) wait(m marker) error {
	c.afterKernel = false
	return c.cudaQueue.wait(m)
}

// cudaGraph is a graph and the stream that it is launched on.
type cudaGraph struct {
	origin *cudaQueue
	exec   cuda.GraphExec
}

func (c *cudaGraph) launch() (at int, err error) {
	return 0, c.origin.ctx.GraphLaunch(c.exec, c.origin.stream)
}

func (c *cudaGraph) close(dead bool, _ time.Duration) error {
	if dead {
		return nil
	}
	return c.origin.ctx.GraphExecDestroy(c.exec)
}

func (c *cudaDriver) alloc(bytes int64) (*Memory, error) {
	p, err := c.ctx.MemAlloc(uint64(bytes))
	return &Memory{addr: uint64(p), handle: p}, outOfMemory(err)
}

// cudaShared is memory that this process has opened.
type cudaShared cuda.DevicePtr

// sharedUnit is the unit in which the driver shares memory with other processes.
const sharedUnit = 2 << 20

func (c *cudaDriver) share(bytes int64) (*Memory, []byte, error) {
	m, err := c.alloc((bytes + sharedUnit - 1) / sharedUnit * sharedUnit)
	if err != nil {
		return nil, nil, err
	}
	h, err := c.ctx.MemoryHandle(m.handle.(cuda.DevicePtr))
	if err != nil {
		return nil, nil, errors.Join(err, c.free(m))
	}
	return m, h[:], nil
}

func (c *cudaDriver) open(handle []byte, _ int64) (*Memory, error) {
	h, err := handleOf(handle)
	if err != nil {
		return nil, err
	}
	p, err := c.ctx.OpenMemory(h)
	return &Memory{addr: uint64(p), handle: cudaShared(p)}, err
}

func handleOf(bytes []byte) (h cuda.Handle, err error) {
	if copy(h[:], bytes) != len(h) || len(bytes) != len(h) {
		return h, fmt.Errorf("%w: the handle has %d bytes", errUnshared, len(bytes))
	}
	return h, nil
}

func (c *cudaDriver) shareMarker() (marker, []byte, error) {
	e, err := c.ctx.EventCreate(cuda.EventNoTiming | cuda.EventInterprocess)
	if err != nil {
		return nil, nil, err
	}
	m := &cudaEvent{c.ctx, e}
	h, err := c.ctx.EventHandle(e)
	if err != nil {
		return nil, nil, errors.Join(err, m.close())
	}
	return m, h[:], nil
}

func (c *cudaDriver) openMarker(handle []byte) (marker, error) {
	h, err := handleOf(handle)
	if err != nil {
		return nil, err
	}
	e, err := c.ctx.OpenEvent(h)
	return &cudaEvent{c.ctx, e}, err
}

// outOfMemory adds ErrOutOfMemory to out-of-memory errors of the driver.
func outOfMemory(err error) error {
	if errors.Is(err, cuda.CodeOutOfMemory) {
		return fmt.Errorf("%w: %w", ErrOutOfMemory, err)
	}
	return err
}

func (c *cudaDriver) pinned(bytes int64) (*Memory, error) {
	if err := c.ledger.take(bytes); err != nil {
		return nil, err
	}
	m, err := c.hostAlloc(bytes)
	if err != nil {
		c.ledger.give(bytes)
	}
	return m, outOfMemory(err)
}

// hostAlloc returns pinned memory that is mapped for kernels of the GPU.
func (c *cudaDriver) hostAlloc(bytes int64) (*Memory, error) {
	p, err := c.ctx.HostAlloc(uint64(bytes), cuda.HostPortable|cuda.HostMapped)
	if err != nil {
		return nil, err
	}
	m := &Memory{pinned: true, handle: p, bytes: unsafe.Slice((*byte)(p), bytes)}
	address, err := c.ctx.HostDevicePointer(p)
	if err != nil {
		return nil, errors.Join(err, c.ctx.HostFree(p))
	}
	m.addr = uint64(address)
	return m, nil
}

func (c *cudaDriver) free(m *Memory) error {
	m.bytes = nil
	switch p := m.handle.(type) {
	case unsafe.Pointer:
		c.ledger.give(m.size)
		return c.ctx.HostFree(p)
	case cudaShared:
		return c.ctx.CloseMemory(cuda.DevicePtr(p))
	}
	return c.ctx.MemFree(m.handle.(cuda.DevicePtr))
}

func (c *cudaDriver) host() *hostLedger { return c.ledger }

func (c *cudaDriver) usage() (free, total int64, err error) {
	f, t, err := c.ctx.MemInfo()
	return int64(f), int64(t), err
}
