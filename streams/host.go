package streams

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/host"
)

// ErrPanicked means that the Go function of a kernel panicked, which makes its CPU device unusable.
var ErrPanicked = errors.New("a kernel panicked")

// panicked is the text of an ErrPanicked, which names the kernel and its device.
type panicked string

func (p panicked) Error() string     { return string(p) }
func (panicked) Is(other error) bool { return other == ErrPanicked }

// hostKind is the backend of CPU cores.
var hostKind = Kind{
	Backend: Host, Traits: hostTraits,
	open: func(_ string, devices int) (*Platform, error) { return HostPlatform(devices), nil },
}

var hostTraits = Traits{Noun: "CPU device", Label: "host", GoKernels: true, HostCores: true, HostMemory: true}

// HostPlatform returns n CPU devices. Each behaves like a GPU with its own memory, events, and streams that run
// in order and concurrently. Each stream is a goroutine, so a device sweeps on one core at a time.
func HostPlatform(n int) *Platform {
	p := &Platform{stop: func() error { return nil }}
	ledger := newHostLedger(true)
	memory, _ := ledger.free() // the first allocation returns the same error
	for id := range n {
		p.infos = append(p.infos, Info{Backend: Host, Traits: hostTraits, ID: id, Name: "host (" + runtime.GOARCH + ")",
			Memory: memory.Total, Cores: 1})
	}
	p.start = func(i Info) (driver, error) { return &hostDriver{ledger: ledger, id: i.ID}, nil }
	return p
}

// hostDriver is the driver of one CPU device. All devices share the memory of the machine.
type hostDriver struct {
	ledger *hostLedger
	id     int
	failed atomic.Pointer[error] // first failure of a kernel of the device; as on a GPU, all later calls return it
}

// hostMaxPitch is the limit of GPUs, so that CPU devices reject the same boxes.
const hostMaxPitch = 1<<31 - 1

func (h *hostDriver) canAccess(*Device) (bool, error) { return true, nil }
func (h *hostDriver) enablePeer(*Device) error        { return nil }
func (h *hostDriver) maxPitch() int64                 { return hostMaxPitch }
func (h *hostDriver) fatal(err error) bool            { return errors.Is(err, ErrPanicked) }
func (h *hostDriver) close() error                    { return nil }

func (h *hostDriver) module([]byte) (module, error) {
	return nil, errors.New("CPU devices cannot load modules")
}

// hostKernel is a kernel of a CPU device.
type hostKernel struct {
	name    string // of the kernel and of the device
	run     func(argument []byte)
	current []byte      // argument of future launches
	free    chan []byte // buffers of completed launches
}

func (*hostKernel) close() error { return nil }

func (h *hostKernel) argument() []byte { return h.current }

// take returns a copy of an argument, in the buffer of a completed launch if there is one.
func (h *hostKernel) take(argument []byte) (own []byte) {
	if argument == nil {
		return nil
	}
	select {
	case own = <-h.free:
	default:
		own = make([]byte, len(argument))
	}
	copy(own, argument)
	return own
}

// launch runs a launch and keeps the buffer of its argument.
func (h *hostKernel) launch(argument []byte) {
	h.run(argument)
	if argument != nil {
		select {
		case h.free <- argument:
		default:
		}
	}
}

func (h *hostDriver) kernel(spec *KernelSpec) (launcher, error) {
	name := fmt.Sprintf("kernel %q of device %s %d", spec.Name, Host, h.id)
	switch {
	case spec.RunWith != nil && len(spec.Argument) > 0:
		return &hostKernel{name, spec.RunWith, slices.Clone(spec.Argument), make(chan []byte, hostQueueLength)}, nil
	case spec.Run != nil:
		return &hostKernel{name: name, run: func([]byte) { spec.Run() }}, nil
	}
	return nil, errors.New("must have a Go function")
}

// hostEvent counts its records: those issued and those reached.
type hostEvent struct {
	failed         *atomic.Pointer[error] // of the device
	mu             sync.Mutex
	reached        sync.Cond
	issued, passed int64
	timed          bool
	at             time.Time // time of the last pass, if timed
}

func (h *hostDriver) marker(timed bool) (marker, error) {
	e := &hostEvent{failed: &h.failed, timed: timed}
	e.reached.L = &e.mu
	return e, nil
}

func (h *hostEvent) issue() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.issued++
	return h.issued
}

func (h *hostEvent) last() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.issued
}

func (h *hostEvent) pass(n int64) {
	h.mu.Lock()
	h.passed = max(h.passed, n)
	if h.timed {
		h.at = time.Now()
	}
	h.mu.Unlock()
	h.reached.Broadcast()
}

// await waits for a record and reports whether it was reached. It returns false once givenUp is set, followed by a
// call of wake.
func (h *hostEvent) await(n int64, givenUp *atomic.Bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.passed < n && !givenUp.Load() {
		h.reached.Wait()
	}
	return h.passed >= n
}

// wake makes all waiters check again.
func (h *hostEvent) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reached.Broadcast()
}

func (h *hostEvent) done() (bool, error) {
	if err := h.failed.Load(); err != nil {
		return false, *err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.passed >= h.issued, nil
}

func (h *hostEvent) since(start marker) (time.Duration, error) {
	from, err := start.(*hostEvent).when()
	if err != nil {
		return 0, err
	}
	to, err := h.when()
	return to.Sub(from), err
}

// when returns the time of the last pass.
func (h *hostEvent) when() (time.Time, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.timed || h.passed < h.issued || h.issued == 0 {
		return time.Time{}, errors.New("the event must be timed, recorded and done")
	}
	return h.at, nil
}

func (h *hostEvent) close() error { return nil }

// hostQueueLength is the number of commands that a host stream holds before the thread that feeds it waits, as
// CUDA streams do.
const hostQueueLength = 1024

// queueLimit is how long a queue may stay full.
const queueLimit = 60 * time.Second

// closedLimit is how long a queue that is closed before it is empty may wait for one event.
const closedLimit = 10 * time.Second

// hostQueue is a host stream: a goroutine that runs commands in order.
type hostQueue struct {
	hostCommands
	mu          sync.Mutex // guards commands and closed: nothing is sent once they are closed
	commands    chan command
	closed      bool
	queued, ran atomic.Int64
	failed      *atomic.Pointer[error]    // of the device
	waitsFor    atomic.Pointer[hostEvent] // event that the running command waits for
	givenUp     atomic.Bool               // the queue no longer waits for events
	closedLimit time.Duration
}

// command is one piece of work; exactly one of its forms is set.
type command struct {
	kernel   *hostKernel
	argument []byte // of the kernel
	dst, src []byte
	rows     rows // rows of the box in dst and src; zero without a box
	record   *hostEvent
	wait     *hostEvent
	n        int64 // number of the record
}

func (h *hostDriver) queue(Priority) (queue, error) {
	return newHostQueue(&h.failed), nil
}

func newHostQueue(failed *atomic.Pointer[error]) *hostQueue {
	q := &hostQueue{commands: make(chan command, hostQueueLength), failed: failed, closedLimit: closedLimit}
	q.put = q.enqueue
	go q.loop()
	return q
}

// loop runs the commands. After a failure it runs no more kernels and copies, but still waits for events and
// passes its own. Thus nothing waits for it without a limit, and the remaining work of other devices stays in
// order.
func (h *hostQueue) loop() {
	for c := range h.commands {
		switch {
		case c.record != nil:
			c.record.pass(c.n)
		case c.wait != nil:
			h.await(c.wait, c.n)
		case h.failed.Load() != nil:
		default:
			h.run(c)
		}
		h.ran.Add(1)
	}
}

// await waits for a record of an event. If the wait is given up, the device fails, since later work must not run.
func (h *hostQueue) await(e *hostEvent, n int64) {
	h.waitsFor.Store(e)
	reached := e.await(n, &h.givenUp)
	h.waitsFor.Store(nil)
	if !reached {
		h.fail(fmt.Errorf("%w: a stream was closed while it waited for an event", errHangs))
	}
}

// fail keeps the first failure of the device.
func (h *hostQueue) fail(err error) { h.failed.CompareAndSwap(nil, &err) }

func (h *hostQueue) run(c command) {
	defer func() {
		if p := recover(); p != nil {
			name := "a copy"
			if c.kernel != nil {
				name = c.kernel.name
			}
			h.fail(panicked(name + " panicked: " + Panicked(p)))
		}
	}()
	switch {
	case c.kernel != nil:
		c.kernel.launch(c.argument)
	case c.rows != rows{}:
		c.rows.copy(c.dst, c.src)
	default:
		copy(c.dst, c.src)
	}
}

// enqueue queues a command. A kernel gets a copy of its argument, and an event its record number.
func (h *hostQueue) enqueue(c command) error {
	if err := h.failed.Load(); err != nil {
		return *err
	}
	switch {
	case c.kernel != nil:
		c.argument = c.kernel.take(c.argument)
	case c.record != nil:
		c.n = c.record.issue()
	case c.wait != nil:
		c.n = c.wait.last()
	}
	sent, err := h.offer(c)
	if !sent && err == nil {
		err = h.enqueueLater(c)
	}
	if err != nil && c.record != nil {
		c.record.pass(c.n)
	}
	return err
}

// offer queues a command unless the queue is full.
func (h *hostQueue) offer(c command) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false, errClosed
	}
	h.queued.Add(1) // before the queue may have run it
	select {
	case h.commands <- c:
		return true, nil
	default:
		h.queued.Add(-1)
		return false, nil
	}
}

// enqueueLater waits until the queue is not full.
func (h *hostQueue) enqueueLater(c command) error {
	wait := yielding.Begin()
	for {
		if sent, err := h.offer(c); sent || err != nil {
			return err
		}
		if wait.Pause() > queueLimit {
			return fmt.Errorf("%w: the queue has been full for %v", errHangs, queueLimit)
		}
	}
}

var errHostCopies = errors.New("source and destination: must be memory of CPU devices or pinned memory")

// hostCommands creates commands, for a queue or for a graph.
type hostCommands struct {
	put func(c command) error // kernels have the argument of future launches, and events no number yet
}

func (h hostCommands) copy(dst, src Span) error { return h.putCopy(dst, src, rows{}) }

func (h hostCommands) copyBox(b box) error {
	dst, src := b.spans()
	return h.putCopy(dst, src, rows{b.width, b.height, b.depth, b.dst.Pitch, b.dst.Plane, b.src.Pitch, b.src.Plane})
}

func (h hostCommands) putCopy(dst, src Span, r rows) error {
	if dst.Memory.bytes == nil || src.Memory.bytes == nil {
		return errHostCopies
	}
	return h.put(command{dst: dst.view(), src: src.view(), rows: r})
}

func (h hostCommands) launch(k launcher) error {
	kernel := k.(*hostKernel)
	return h.put(command{kernel: kernel, argument: kernel.current})
}

func (h hostCommands) record(m marker) error { return h.put(command{record: m.(*hostEvent)}) }

func (h hostCommands) wait(m marker) error {
	e, ok := m.(*hostEvent)
	if !ok {
		return errors.New("the event must belong to a CPU device")
	}
	return h.put(command{wait: e})
}

// rows is the layout of the rows of a box in the destination and in the source.
type rows struct {
	width, height, depth int64
	dstPitch, dstPlane   int64
	srcPitch, srcPlane   int64
}

func (r rows) copy(dst, src []byte) {
	for z := range r.depth {
		for y := range r.height {
			to, from := z*r.dstPlane+y*r.dstPitch, z*r.srcPlane+y*r.srcPitch
			copy(dst[to:to+r.width], src[from:from+r.width])
		}
	}
}

func (h *hostQueue) idle() (bool, error) {
	if err := h.failed.Load(); err != nil {
		return false, *err
	}
	return h.ran.Load() == h.queued.Load(), nil
}

// close ends the goroutine once it has run the queued work. It gives up waiting after a while for events that are
// never recorded because their device is dead.
func (h *hostQueue) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	close(h.commands)
	if h.ran.Load() != h.queued.Load() {
		time.AfterFunc(h.closedLimit, h.giveUp)
	}
	return nil
}

// giveUp ends the current wait for an event, and future ones.
func (h *hostQueue) giveUp() {
	h.givenUp.Store(true)
	if e := h.waitsFor.Load(); e != nil {
		e.wake()
	}
}

// hostLedger counts the host memory that the devices of a platform use, and rejects allocations that exceed the
// available memory.
type hostLedger struct {
	now  func() (host.Memory, error) // nil if unknown
	lazy bool                        // pages are not allocated until they are written

	mu     sync.Mutex
	used   int64
	credit int64 // bytes that may be allocated without reading the available memory again
	then   time.Time
}

// A reading of the available memory is valid for lookFor, and for this fraction of it.
const (
	creditTime = time.Second
	creditPart = 16
)

// addressSpace bounds allocations if the free memory is unknown.
const addressSpace = 1 << 46

func newHostLedger(lazy bool) *hostLedger {
	l := &hostLedger{lazy: lazy}
	if host, err := host.Open(); err == nil {
		l.now = host.Now
	}
	return l
}

// take counts a block before it is allocated, or returns ErrOutOfMemory.
func (h *hostLedger) take(bytes int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		if bytes > addressSpace-h.used {
			return fmt.Errorf("%w: %s exceed the address space of the host", ErrOutOfMemory, Size(bytes))
		}
		h.used += bytes
		return nil
	}
	if bytes <= h.credit && time.Now().Before(h.then) {
		h.used, h.credit = h.used+bytes, h.credit-bytes
		return nil
	}
	m, err := h.look()
	if err == nil && bytes > m.Free {
		debug.FreeOSMemory() // closed blocks may not have been returned to the system yet
		m, err = h.look()
	}
	if err != nil {
		return err
	}
	if bytes > m.Free {
		needs, has := sizes(bytes, m.Free)
		return fmt.Errorf("%w: need %s, but only %s of host memory are available: %s", ErrOutOfMemory, needs,
			has, m.Source)
	}
	h.used, h.credit, h.then = h.used+bytes, (m.Free-bytes)/creditPart, time.Now().Add(creditTime)
	return nil
}

// give counts a freed block.
func (h *hostLedger) give(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used -= bytes
}

// free returns the free and the total memory; zeros if unknown.
func (h *hostLedger) free() (host.Memory, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		return host.Memory{}, nil
	}
	return h.look()
}

// look reads the free memory. Blocks take pages when they are first written, so the pages that the process does
// not hold yet are subtracted.
func (h *hostLedger) look() (m host.Memory, err error) {
	m, err = h.now()
	if err != nil {
		return m, errors.Join(errors.New("query host memory"), err)
	}
	if h.lazy {
		m.Free = max(0, m.Free-max(0, h.used-m.Resident))
	}
	return m, nil
}

func (h *hostDriver) alloc(bytes int64) (*Memory, error)  { return h.block(bytes, false) }
func (h *hostDriver) pinned(bytes int64) (*Memory, error) { return h.block(bytes, true) }

// block returns zeroed bytes aligned to 128.
func (h *hostDriver) block(bytes int64, pinned bool) (*Memory, error) {
	if err := h.ledger.take(bytes); err != nil {
		return nil, err
	}
	const alignment = 128
	block := make([]byte, bytes+alignment)
	adviseHuge(block)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(block))) & (alignment - 1)
	return &Memory{bytes: block[skip : int64(skip)+bytes : int64(skip)+bytes], pinned: pinned}, nil
}

func (h *hostDriver) free(m *Memory) error {
	if !m.borrowed {
		h.ledger.give(m.size)
	}
	m.bytes = nil
	if s, shared := m.handle.(*SharedBytes); shared {
		return s.Close()
	}
	return nil
}

func (h *hostDriver) host() *hostLedger { return h.ledger }

func (h *hostDriver) usage() (free, total int64, err error) {
	m, err := h.ledger.free()
	return m.Free, m.Total, err
}
