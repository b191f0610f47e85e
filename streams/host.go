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
)

// errKernelPanic is what a host device dies of.
var errKernelPanic = errors.New("a kernel panicked")

// hostKind is cores of the host.
var hostKind = Kind{
	Backend: Host, Traits: hostTraits,
	open: func(_ string, devices int) (*Platform, error) { return HostPlatform(devices), nil },
}

var hostTraits = Traits{Noun: "host device", Label: "host", GoKernels: true, HostCores: true, HostMemory: true}

// HostPlatform returns n host devices. Each behaves like a GPU with memory of
// its own, streams that run in order and beside each other, and events; each
// stream is a goroutine, so that a device sweeps on one core at a time.
func HostPlatform(n int) *Platform {
	p := &Platform{stop: func() error { return nil }}
	total := hostMemory()
	for id := range n {
		p.infos = append(p.infos, Info{Backend: Host, Traits: hostTraits, ID: id, Name: "host (" + runtime.GOARCH + ")", Memory: total, Cores: 1})
	}
	used := &atomic.Int64{}
	p.start = func(Info) (driver, error) { return &hostDriver{total: total, used: used}, nil }
	return p
}

// hostDriver is the driver of one host device. Together the devices have the
// memory of the machine.
type hostDriver struct {
	total int64
	used  *atomic.Int64
}

func (h *hostDriver) alloc(bytes int64) (*Memory, error) {
	if h.total > 0 && h.used.Load()+bytes > h.total {
		return nil, fmt.Errorf("out of memory: %d bytes in use of %d", h.used.Load(), h.total)
	}
	h.used.Add(bytes)
	return h.pinnedBlock(bytes, false)
}

func (h *hostDriver) pinned(bytes int64) (*Memory, error) { return h.pinnedBlock(bytes, true) }

// pinnedBlock returns zeroed bytes aligned to 128.
func (h *hostDriver) pinnedBlock(bytes int64, pinned bool) (*Memory, error) {
	const alignment = 128
	block := make([]byte, bytes+alignment)
	adviseHuge(block)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(block))) & (alignment - 1)
	return &Memory{bytes: block[skip : int64(skip)+bytes : int64(skip)+bytes], pinned: pinned}, nil
}

func (h *hostDriver) free(m *Memory) error {
	if !m.pinned {
		h.used.Add(-m.size)
	}
	m.bytes = nil
	return nil
}

func (h *hostDriver) usage() (free, total int64, err error) {
	return h.total - h.used.Load(), h.total, nil
}

// hostMaxPitch is that of GPUs, so that host devices refuse what those refuse.
const hostMaxPitch = 1<<31 - 1

func (h *hostDriver) canAccess(*Device) (bool, error) { return true, nil }
func (h *hostDriver) enablePeer(*Device) error        { return nil }
func (h *hostDriver) maxPitch() int64                 { return hostMaxPitch }
func (h *hostDriver) fatal(err error) bool            { return errors.Is(err, errKernelPanic) }
func (h *hostDriver) close() error                    { return nil }

func (h *hostDriver) module([]byte) (module, error) {
	return nil, errors.New("host devices load no modules")
}

// hostKernel is the host form of a kernel.
type hostKernel struct {
	run     func(argument []byte)
	current []byte      // the argument of launches to come
	free    chan []byte // what launches that are done leave for others
}

func (*hostKernel) close() error { return nil }

func (k *hostKernel) argument() []byte { return k.current }

// command returns a launch with a copy of the argument.
func (k *hostKernel) command(argument []byte) command {
	c := command{kernel: k}
	if argument == nil {
		return c
	}
	select {
	case c.argument = <-k.free:
	default:
		c.argument = make([]byte, len(argument))
	}
	copy(c.argument, argument)
	return c
}

// launch runs a launch and keeps the room of its argument.
func (k *hostKernel) launch(argument []byte) {
	k.run(argument)
	if argument != nil {
		select {
		case k.free <- argument:
		default:
		}
	}
}

func (h *hostDriver) kernel(spec *KernelSpec) (launcher, error) {
	switch {
	case spec.RunWith != nil && len(spec.Argument) > 0:
		return &hostKernel{spec.RunWith, slices.Clone(spec.Argument), make(chan []byte, hostQueueLength)}, nil
	case spec.Run != nil:
		return &hostKernel{run: func([]byte) { spec.Run() }}, nil
	}
	return nil, errors.New("it has no host version")
}

// hostEvent counts its records: issued ones and those reached.
type hostEvent struct {
	mu             sync.Mutex
	reached        sync.Cond
	issued, passed int64
	timed          bool
	at             time.Time // of the last pass, if timed
}

func (h *hostDriver) marker(timed bool) (marker, error) {
	e := &hostEvent{timed: timed}
	e.reached.L = &e.mu
	return e, nil
}

func (e *hostEvent) issue() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.issued++
	return e.issued
}

func (e *hostEvent) last() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.issued
}

func (e *hostEvent) pass(n int64) {
	e.mu.Lock()
	e.passed = max(e.passed, n)
	if e.timed {
		e.at = time.Now()
	}
	e.mu.Unlock()
	e.reached.Broadcast()
}

func (e *hostEvent) await(n int64) {
	e.mu.Lock()
	for e.passed < n {
		e.reached.Wait()
	}
	e.mu.Unlock()
}

func (e *hostEvent) done() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.passed >= e.issued, nil
}

func (e *hostEvent) since(start marker) (time.Duration, error) {
	from, err := start.(*hostEvent).when()
	if err != nil {
		return 0, err
	}
	to, err := e.when()
	return to.Sub(from), err
}

// when returns the time of the last pass.
func (e *hostEvent) when() (time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.timed || e.passed < e.issued || e.issued == 0 {
		return time.Time{}, errors.New("it is not timed, or not recorded and done")
	}
	return e.at, nil
}

func (e *hostEvent) close() error { return nil }

// hostQueueLength is how much a host stream holds before the thread that feeds
// it waits, as CUDA's streams do.
const hostQueueLength = 1024

// queueLimit is how long a full queue may take to get room.
const queueLimit = 60 * time.Second

// hostQueue is a host stream: a goroutine that runs commands in order.
type hostQueue struct {
	commands    chan command
	queued, ran atomic.Int64
	failed      *atomic.Pointer[error] // shared with what graphs do of this stream
}

// command is one piece of work; exactly one of its forms is set.
type command struct {
	kernel   *hostKernel
	argument []byte // of the kernel
	dst, src []byte
	rows     rows // of which dst and src hold a box, or none
	record   *hostEvent
	wait     *hostEvent
	n        int64 // which record
}

func (h *hostDriver) queue(Priority) (queue, error) {
	return newHostQueue(&atomic.Pointer[error]{}), nil
}

func newHostQueue(failed *atomic.Pointer[error]) *hostQueue {
	q := &hostQueue{commands: make(chan command, hostQueueLength), failed: failed}
	go q.loop()
	return q
}

// loop runs the commands. After a failure it runs no more kernels and copies, but
// still waits for events and passes its own: so nobody waits for it for ever, and what
// other devices still have to do stays in order.
func (q *hostQueue) loop() {
	for c := range q.commands {
		switch {
		case c.record != nil:
			c.record.pass(c.n)
		case c.wait != nil:
			c.wait.await(c.n)
		case q.failed.Load() != nil:
		default:
			q.run(c)
		}
		q.ran.Add(1)
	}
}

func (q *hostQueue) run(c command) {
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("%w: %v\n%s", errKernelPanic, p, debug.Stack())
			q.failed.Store(&err)
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

func (q *hostQueue) put(c command) error {
	if err := q.failed.Load(); err != nil {
		return *err
	}
	q.queued.Add(1)
	select {
	case q.commands <- c:
		return nil
	default:
		return q.putLater(c)
	}
}

// putLater waits for room in the queue.
func (q *hostQueue) putLater(c command) error {
	poll := newBackoff(shortSpin)
	for {
		select {
		case q.commands <- c:
			return nil
		default:
		}
		if poll.pause() > queueLimit {
			q.queued.Add(-1)
			return fmt.Errorf("%w: its queue has been full for %v", errHangs, queueLimit)
		}
	}
}

var errHostCopies = errors.New("a host device copies between host devices and pinned memory only")

func (q *hostQueue) copy(dst, src Span) error {
	c, err := hostCopy(dst, src)
	if err != nil {
		return err
	}
	return q.put(c)
}

func (q *hostQueue) copyBox(b box) error {
	c, err := hostCopyBox(b)
	if err != nil {
		return err
	}
	return q.put(c)
}

// hostCopy returns the command that copies.
func hostCopy(dst, src Span) (command, error) {
	if dst.Memory.bytes == nil || src.Memory.bytes == nil {
		return command{}, errHostCopies
	}
	return command{dst: dst.view(), src: src.view()}, nil
}

// hostCopyBox returns the command that copies a box.
func hostCopyBox(b box) (command, error) {
	c, err := hostCopy(b.spans())
	c.rows = rows{b.width, b.height, b.depth, b.dst.Pitch, b.dst.Plane, b.src.Pitch, b.src.Plane}
	return c, err
}

// rows is how the rows of a box lie in the destination and in the source.
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

func (q *hostQueue) launch(k launcher) error {
	h := k.(*hostKernel)
	return q.put(h.command(h.current))
}

func (q *hostQueue) record(m marker) error {
	e := m.(*hostEvent)
	n := e.issue()
	err := q.put(command{record: e, n: n})
	if err != nil {
		e.pass(n)
	}
	return err
}

func (q *hostQueue) wait(m marker) error {
	e, ok := m.(*hostEvent)
	if !ok {
		return errors.New("the event is not one of a host device")
	}
	return q.put(command{wait: e, n: e.last()})
}

func (q *hostQueue) idle() (bool, error) {
	if err := q.failed.Load(); err != nil {
		return false, *err
	}
	return q.ran.Load() == q.queued.Load(), nil
}

// close ends the goroutine once it has run what is queued.
func (q *hostQueue) close() error {
	close(q.commands)
	return nil
}
