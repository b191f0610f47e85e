package ranks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Run runs the program: it copies the i-th data to device i, where all its ranks share it, launches all
// ranks, waits until all have ended, and copies the data back. On a GPU, T must contain no pointers and have
// the layout of the kernel's struct, see kernels.CheckPassable; otherwise it is an error. Run uses its own
// streams: data that ranks read must be in place before the call. Devices cannot be closed until it returns.
// When the context ends, the run ends with its cause as the error.
//
// A rank that fails ends the run: the error names the first one, and wraps ErrTimeout or ErrArgument if it is
// one of these. If a rank does not end after that, for example because it waits for something else, Run
// returns an error Options.Limit and ten seconds later, and later runs of the world fail too. The device may
// then be unusable: open a new session. Memory that ranks use must stay valid until they end.
//
// With Options.Processes all processes call Run, each with data of its own devices. It begins once all have
// called it, and ignores the context until then. Runs of all their worlds are sequential, in the same order.
// A run that ends at one process ends at all; errors of other processes are *mpi.RemoteError, which name the
// process.
func Run[T any](ctx context.Context, w *World, data []T) error {
	free := w.use.TryLock()
	if free {
		defer w.use.Unlock()
	}
	err := w.canRun(ctx, free, len(data), reflect.TypeFor[T]())
	if err == nil {
		if err = streams.Hold(w.devices); err == nil {
			defer streams.Release(w.devices)
		}
	}
	if err = w.agree("begin a run", err); err != nil {
		return err
	}
	if w.devices[0].GoKernels {
		return w.endTogether(runOnHost(ctx, w, data))
	}
	size := int64(unsafe.Sizeof(data[0]))
	err = w.layChannels()
	for i, m := range w.members {
		if err == nil {
			err = m.load(w, size)
		}
		if err == nil && size > 0 {
			*(*T)(unsafe.Pointer(&m.copied.Bytes()[0])) = data[i]
		}
	}
	if err == nil {
		err = w.reset(size)
	}
	for _, m := range w.members {
		m.took = m.took[:0]
	}
	if err := w.agree("launch ranks", err); err != nil {
		return err
	}
	err = w.runOnGPUs(ctx, size)
	for i, m := range w.members {
		if err == nil && size > 0 {
			data[i] = *(*T)(unsafe.Pointer(&m.copied.Bytes()[0]))
		}
	}
	return w.endTogether(err)
}

// canRun returns an error unless a run can begin, with data elements of a type. free is false if the world is
// in use.
func (w *World) canRun(ctx context.Context, free bool, data int, of reflect.Type) error {
	if data != len(w.devices) {
		return fmt.Errorf("ranks: %s: must have data for %d devices, got %d", w.program.Name, len(w.devices), data)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := w.usable(free); err != nil {
		return err
	}
	if w.stuck != nil {
		return fmt.Errorf("ranks: %s cannot run again: %w", w.program.Name, w.stuck)
	}
	if of == w.passable || w.devices[0].GoKernels {
		return nil
	}
	if err := kernels.CheckPassable(of); err != nil {
		return fmt.Errorf("ranks: %s: data: %w", w.program.Name, err)
	}
	w.passable = of
	return nil
}

// load allocates memory for size bytes of the caller's data, and sets the arguments of the launch.
func (m *member) load(w *World, size int64) error {
	if m.data == nil || m.data.Size() < size {
		o := &opener{w: w, d: m.device}
		data, copied := o.memory(max(size, 8)), o.pinned(max(size, 8))
		if o.err != nil {
			return o.err
		}
		m.data, m.copied = data, copied
	}
	arg := (*argument)(unsafe.Pointer(&m.kernel.Argument()[0]))
	arg.data, arg.windows = m.data.Address(), w.windows
	if m.ends != nil {
		arg.ends = m.ends.Address()
	}
	return nil
}

// runOnGPUs launches the ranks, after resetting all memory, and waits for them.
func (w *World) runOnGPUs(ctx context.Context, size int64) (err error) {
	if w.remote != nil {
		if err := w.remote.begin(); err != nil {
			return err
		}
	}
	proxy := w.startProxy()
	for _, m := range w.members {
		if err = errors.Join(m.stream.Launch(m.kernel), m.stream.Record(m.ended)); err != nil {
			break
		}
	}
	watched := w.watch(ctx, proxy, err)
	if failed := errors.Join(watched, proxy.finish()); failed != nil {
		if watched == errOtherProcess && failed.Error() == watched.Error() {
			return errOtherProcess
		}
		return failed
	}
	return w.fetch(size)
}

// reset sets memory, rings and data to their initial state.
func (w *World) reset(size int64) error {
	b := w.layout()
	for _, m := range w.members {
		if m.controls().ended != 0 {
			if err := m.ender.Sync(w.grace); err != nil {
				return err
			}
		}
		*m.controls() = control{}
		clear(m.lines.Bytes())
		clear(m.staging.Bytes()[:b.counts()])
		errs := []error{m.stream.Copy(m.memory.Span(0, m.staging.Size()), m.staging.All())}
		errs = append(errs, m.clear(m.memory.Span(b.boxes(), b.bytes()-b.boxes())))
		for _, ring := range m.rings {
			errs = append(errs, m.clear(ring.All()))
		}
		if size > 0 {
			errs = append(errs, m.stream.Copy(m.data.Span(0, size), m.copied.Span(0, size)))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	for _, m := range w.members {
		if err := m.stream.Sync(w.grace); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies the timings and the data of a run back.
func (w *World) fetch(size int64) error {
	b := w.layout()
	for _, m := range w.members {
		timed := m.staging.Span(b.timings(), b.counts()-b.timings())
		errs := []error{m.stream.Copy(timed, m.memory.Span(timed.Offset, timed.Length))}
		if size > 0 {
			errs = append(errs, m.stream.Copy(m.copied.Span(0, size), m.data.Span(0, size)))
		}
		if err := errors.Join(append(errs, m.stream.Sync(w.grace))...); err != nil {
			return err
		}
	}
	for _, m := range w.members {
		t := (*timings)(unsafe.Pointer(&m.staging.Bytes()[b.timings()]))
		m.took = append(m.took[:0], t.nanoseconds[:min(t.count, maxTimings)]...)
	}
	return nil
}

// clear queues copies of zeros.
func (m *member) clear(to streams.Span) error {
	for at := int64(0); at < to.Length; at += m.zeros.Size() {
		n := min(m.zeros.Size(), to.Length-at)
		if err := m.stream.Copy(to.Memory.Span(to.Offset+at, n), m.zeros.Span(0, n)); err != nil {
			return err
		}
	}
	return nil
}

// end makes all ranks end the run, and notifies other processes unless one of them has ended it.
func (w *World) end(why error) {
	for _, m := range w.members {
		m.controls().ended = 1
		_ = m.copyEnded() // fails only on a failed device, where no rank waits
	}
	if w.remote != nil && why != errOtherProcess {
		_ = w.remote.postAll(message{what: msgEnded}) // a failure of the queue is reported on all processes
	}
}

// watch waits until the ranks of all devices have ended. It ends the run when a rank or a device fails, when the
// context is done, when another process ends the run, and at once if launch, the error of the launches, is not nil.
func (w *World) watch(ctx context.Context, proxy *proxy, launch error) error {
	idle := fewLoops.Begin()
	var failed error
	fail := func(err error) {
		if err != nil && failed == nil {
			failed = err
			w.end(err)
		}
	}
	fail(launch)
	running := make(map[*member]bool)
	for _, m := range w.members {
		running[m] = true
	}
	for since := time.Now(); len(running) > 0; {
		for m := range running {
			done, err := m.ended.Done()
			if done || err != nil {
				delete(running, m)
			}
			fail(err)
		}
		for _, m := range w.members {
			reading := time.Now()
			w.log.read(m.device, m.lines, m.controls())
			since = since.Add(time.Since(reading)) // ranks may end while the writer is slow
			fail(m.failure(w))
		}
		if len(running) > 0 {
			fail(context.Cause(ctx))
		}
		if proxy.gaveUp() {
			fail(errProxy)
		}
		if proxy.endedByOther() {
			fail(errOtherProcess)
		}
		if failed == nil {
			since = time.Now()
		}
		if time.Since(since) > w.grace {
			w.stuck = w.notEnded()
			return errors.Join(here(failed), w.stuck)
		}
		if len(running) > 0 {
			idle.Pause()
		}
	}
	return failed
}

// failure returns the error of the first rank of a GPU that has failed.
func (m *member) failure(w *World) error {
	c := m.controls()
	if atomic.LoadUint64(&c.written) == 0 {
		return nil
	}
	f := failure{
		why: reason(c.failure), rank: int(c.rank), expected: int64(c.expected), came: int64(c.came),
		detail: int64(c.detail), where: int64(c.where),
	}
	if f.why == byProgram {
		f.err = w.program.Errors[f.expected]
	}
	return f.describe(m.device.String(), w.options.Limit)
}

// Timings returns the times measured by the ranks of one of Devices in the last run, in the order of their
// starts. On GPUs, a failed run has none.
func (w *World) Timings(device int) (all []time.Duration) {
	for _, ns := range w.members[device].took {
		all = append(all, time.Duration(ns))
	}
	return all
}

// runOnHost runs the program once.
func runOnHost[T any](ctx context.Context, w *World, data []T) error {
	h := w.host
	h.state.begin(w.first, w.presets, w.sizes, w.channels)
	h.begin(w.first, w.windows)
	for i := range data {
		h.state.data[i] = &data[i]
	}
	progress, err := h.state.startProgress()
	if err != nil {
		return err
	}
	for _, m := range w.members {
		if err := errors.Join(m.stream.Launch(m.kernel), m.stream.Record(m.ended)); err != nil {
			h.state.end(err)
			break
		}
	}
	defer h.state.endWith(ctx)()
	w.stuck = w.join()
	progress.finish()
	if w.stuck != nil {
		return errors.Join(w.stuck, here(h.state.reason()))
	}
	return h.state.reason() // not wrapped: endTogether compares it
}

// endWith ends the run when the context is done, until the returned function is called.
func (h *hostState) endWith(ctx context.Context) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		h.end(context.Cause(ctx))
		close(ended)
	})
	return func() {
		if !stop() {
			<-ended // the next run uses the same state
		}
	}
}

// reason returns why the run has ended early, or nil.
func (h *hostState) reason() error {
	h.failing.Lock()
	defer h.failing.Unlock()
	return h.failed
}

// join waits until the ranks of all devices have ended. If it returns an error, some may still run.
func (w *World) join() (failed error) {
	h := w.host.state
	idle := fewLoops.Begin()
	over := time.Now()
	for i, m := range w.members {
		for {
			done, err := m.ended.Done()
			if err != nil {
				h.end(err)
				failed = errors.Join(failed, err)
				break
			}
			if done {
				m.took = append(m.took[:0], h.took[i]...)
				break
			}
			if !h.over.Load() {
				over = time.Now()
			}
			if time.Since(over) > w.grace {
				return errors.Join(failed, w.notEnded())
			}
			idle.Pause()
		}
		idle = fewLoops.Begin()
	}
	return failed
}

// notEnded is the error of a run whose ranks do not end.
func (w *World) notEnded() error {
	return fmt.Errorf("ranks: %s has not ended %v after it should", w.program.Name, w.grace)
}

// progressLoop receives the messages of other processes for ranks on CPU devices, and executes them. Ranks
// send their own messages.
type progressLoop struct {
	h    *hostState
	stop atomic.Bool
	done chan struct{}
}

// startProgress returns nil if there are no other processes.
func (h *hostState) startProgress() (*progressLoop, error) {
	if h.remote == nil {
		return nil, nil
	}
	if err := h.remote.begin(); err != nil {
		return nil, err
	}
	p := &progressLoop{h: h, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if err := p.serve(); err != nil {
			h.end(err)
		}
	}()
	return p, nil
}

// finish returns once the ranks of all processes have ended.
func (p *progressLoop) finish() {
	if p != nil {
		p.stop.Store(true)
		<-p.done
	}
}

// serve handles messages until the run has ended on all processes.
func (p *progressLoop) serve() error {
	return p.h.remote.serve(&p.stop, func() (some, left bool, err error) {
		some, err = p.h.remote.take(p.take)
		if err == nil {
			err = p.h.remote.answer()
		}
		if err != nil {
			err = fmt.Errorf("ranks: messages of other processes: %w", err)
		}
		return some, false, err
	})
}

// take handles a message. An invalid message ends the run, but the loop continues, since other processes wait
// for answers to later messages.
func (p *progressLoop) take(from int, msg message, body []byte) error {
	if err := p.do(from, msg, body); err != nil {
		p.h.end(fmt.Errorf("ranks: messages of other processes: %w", err))
	}
	return nil
}

func (p *progressLoop) do(from int, msg message, body []byte) error {
	h := p.h
	size := int64(h.Size())
	if msg.from < 0 || msg.from >= size {
		return fmt.Errorf("a message from rank %d is invalid", msg.from)
	}
	switch msg.what {
	case msgEnded:
		h.end(errOtherProcess)
		return nil
	case msgArrive:
		h.others.add(uint64(msg.n))
		return nil
	case msgWindow:
		if msg.slot < 0 || msg.slot >= 2*MaxWindows {
			return fmt.Errorf("a message for window %d is invalid", msg.slot)
		}
		h.sizes[msg.slot][msg.from] = msg.n
		return nil
	}
	if msg.to < 0 || msg.to >= size || h.processOf(int(msg.to)) >= 0 {
		return fmt.Errorf("a message for rank %d is invalid", msg.to)
	}
	switch msg.what {
	case msgPut, msgPacket, msgGet:
		return p.access(from, msg, body)
	case msgGot:
		h.replies[int(msg.to)-h.before*h.ranks].take(body)
		return nil
	case msgNotify:
		if msg.at < 0 || msg.at >= Tags {
			return fmt.Errorf("a message for tag %d is invalid", msg.at)
		}
		h.notify(int(msg.to), otherProcess, envelope{int(msg.slot), int(msg.from), int(msg.at)})
		return nil
	case msgValues:
		return p.give(msg, body)
	case msgSent, msgRead:
		return p.carry(msg, body)
	}
	return fmt.Errorf("a message has unknown kind %d", msg.what)
}

// access reads or writes the window of a rank.
func (p *progressLoop) access(from int, msg message, body []byte) error {
	n := msg.what.space(int64(len(body)))
	if msg.what == msgGet {
		n = msg.n
	}
	if msg.slot < 0 || msg.slot >= 2*MaxWindows {
		return fmt.Errorf("a message for window %d is invalid", msg.slot)
	}
	window := p.h.windows[msg.slot][msg.to]
	if msg.at < 0 || n < 0 || msg.at > int64(len(window))-n {
		return fmt.Errorf("a message for %d bytes at offset %d exceeds a window of %d bytes", n, msg.at, len(window))
	}
	if msg.what == msgPacket && (len(body)%4 != 0 || msg.at%8 != 0) {
		return fmt.Errorf("a message with a packet of %d bytes at offset %d of a window is invalid", len(body), msg.at)
	}
	there := window[msg.at:][:n]
	if align := alignOf(body); msg.what == msgPacket && !isAligned(there, align) {
		wrong := failure{why: badPacket, rank: int(msg.from), expected: align, came: int64(len(body)), detail: msg.at}
		// The start of the window is known only here.
		p.h.end(wrong.describe("of "+p.h.remote.processes.Name(from), p.h.limit))
		return nil
	}
	switch msg.what {
	case msgPut:
		copy(there, body)
	case msgPacket:
		storePacket(there, body, uint32(msg.n))
	case msgGet:
		return p.h.remote.post(from, message{what: msgGot, to: msg.from}, there)
	}
	return nil
}

// give receives values that a rank of another process gives to a collective of all ranks.
func (p *progressLoop) give(msg message, body []byte) error {
	g, call := &p.h.given[All][uint64(msg.slot)%2][msg.from], rankCall(msg.n)
	if msg.at == 0 {
		g.call, g.values = call, g.values[:0]
	}
	if msg.at != int64(len(g.values)) || msg.at+int64(len(body)) > call.bytes() {
		return fmt.Errorf("a message with %d bytes at %d exceeds the values of %v", len(body), msg.at, call)
	}
	if g.values = append(g.values, body...); int64(len(g.values)) == call.bytes() {
		g.number.Store(uint64(msg.slot))
	}
	return nil
}

// carry receives a message of a channel, or the number of messages that the receiver has read.
func (p *progressLoop) carry(msg message, body []byte) error {
	if msg.slot < 0 || msg.slot >= int64(len(p.h.channels)) {
		return fmt.Errorf("a message for channel %d is invalid", msg.slot)
	}
	channel := p.h.channels[msg.slot]
	if msg.what == msgRead {
		channel.read.Store(uint64(msg.n))
		return nil
	}
	channel.put(body)
	return nil
}
