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

// Run runs the program: it copies the i-th data to device i, where all its ranks share it, launches all ranks,
// waits until all have ended, and copies the data back. On a GPU, T holds no pointers and lies in memory as the
// struct of the kernel does, see kernels.CheckPassable; it is an error if it cannot. Run uses streams of its own: what ranks read is in place
// before it is called. When the context ends, so does the run, with its cause as the error.
//
// A rank that fails ends the run: the error names the first one, and wraps ErrTimeout or ErrArgument where
// it is one. A rank that does not end even so, as one that waits for something else, holds Run up for Options.Limit and ten
// seconds more; then Run returns an error, and later runs of the world one that wraps it. Its device may then be
// of no more use to anybody: open a new session. What the ranks use must be there until they end.
//
// With Options.Processes all processes call Run, each with data of its own devices. It begins once all have called it. While it
// waits for them it does not look at the context. Runs of all their worlds go one after the other, in the same order. A run that
// ends at one ends at all, and the errors of other processes are *mpi.RemoteError, which say whose they are.
func Run[T any](ctx context.Context, w *World, data []T) error {
	free := w.use.TryLock()
	if free {
		defer w.use.Unlock()
	}
	if err := w.agree("begin a run", w.canRun(ctx, free, len(data), reflect.TypeFor[T]())); err != nil {
		return err
	}
	if w.devices[0].GoKernels {
		return w.endTogether(runOnHost(ctx, w, data))
	}
	size := int64(unsafe.Sizeof(data[0]))
	err := w.layChannels()
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

// canRun returns an error unless a run can begin, with so many data of a type. Free is whether nobody else uses the world.
func (w *World) canRun(ctx context.Context, free bool, data int, of reflect.Type) error {
	if data != len(w.devices) {
		return fmt.Errorf("ranks: %s: data of %d devices for %d", w.program.Name, data, len(w.devices))
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if w.closed.Load() {
		return fmt.Errorf("ranks: %s: the world is closed", w.program.Name)
	}
	if !free {
		return fmt.Errorf("ranks: %s is running already", w.program.Name)
	}
	if w.stuck != nil {
		return fmt.Errorf("ranks: %s runs no more: %w", w.program.Name, w.stuck)
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

// load has memory for so many bytes of the caller's data, and the launch told of it.
func (m *member) load(w *World, size int64) error {
	if m.data == nil || m.data.Size() < size {
		data, err := m.device.Alloc(max(size, 8))
		if err != nil {
			return err
		}
		w.resources.Add(data)
		copied, err := m.device.AllocPinned(max(size, 8))
		if err != nil {
			return err
		}
		w.resources.Add(copied)
		m.data, m.copied = data, copied
	}
	arg := (*argument)(unsafe.Pointer(&m.kernel.Argument()[0]))
	arg.data, arg.windows = m.data.Address(), w.windows
	if m.ends != nil {
		arg.ends = m.ends.Address()
	}
	return nil
}

// runOnGPUs launches the ranks, once all boards are reset, and waits for them.
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
		if watched == errElsewhere && failed.Error() == watched.Error() {
			return errElsewhere
		}
		return failed
	}
	return w.fetch(size)
}

// reset has all boards, rings and data as they are when a run begins.
func (w *World) reset(size int64) error {
	b := w.board()
	for _, m := range w.members {
		if m.controls().ended != 0 {
			if err := m.ender.Sync(w.grace); err != nil {
				return err
			}
		}
		*m.controls() = control{}
		clear(m.lines.Bytes())
		clear(m.staging.Bytes()[:b.counts()])
		errs := []error{m.stream.Copy(m.board.Span(0, m.staging.Size()), m.staging.All())}
		errs = append(errs, m.clear(m.board.Span(b.boxes(), b.bytes()-b.boxes())))
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
	b := w.board()
	for _, m := range w.members {
		timed := m.staging.Span(b.timings(), b.counts()-b.timings())
		errs := []error{m.stream.Copy(timed, m.board.Span(timed.Offset, timed.Length))}
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

// end tells all ranks that the run ends, and why.
func (w *World) end(why error) {
	for _, m := range w.members {
		m.controls().ended = 1
		_ = m.copyEnded() // fails only on a device that has failed, where nobody waits
	}
	if w.remote != nil && why != errElsewhere {
		_ = w.remote.postAll(letter{what: letterEnded}) // a failure of the mail is one of all processes
	}
}

// watch waits until the ranks of all devices have ended. It ends all where one has failed, where a device has,
// when the context ends, when another process ends the run, and at once where launch, the error of the launches, is one.
func (w *World) watch(ctx context.Context, proxy *proxy, launch error) error {
	var idle pause
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
			since = since.Add(time.Since(reading)) // while the writer is slow, ranks may end
			fail(m.failure(w))
		}
		if len(running) > 0 {
			fail(context.Cause(ctx))
		}
		if proxy.gaveUp() {
			fail(errProxy)
		}
		if proxy.endedElsewhere() {
			fail(errElsewhere)
		}
		if failed == nil {
			since = time.Now()
		}
		if time.Since(since) > w.grace {
			w.stuck = w.notEnded()
			return errors.Join(ofHere(failed), w.stuck)
		}
		if len(running) > 0 {
			idle.nap()
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
	f := failure{why: reason(c.failure), rank: int(c.rank), expected: int64(c.expected), came: int64(c.came), detail: int64(c.detail), where: int64(c.where)}
	if f.why == byProgram {
		f.err = w.program.Errors[f.expected]
	}
	return f.describe(m.device, w.options.Limit)
}

// Timings returns what the ranks of one of Devices have timed in the last run, in the order of their starts. On GPUs a run that has failed has none.
func (w *World) Timings(device int) (all []time.Duration) {
	for _, ns := range w.members[device].took {
		all = append(all, time.Duration(ns))
	}
	return all
}

// bytesOf returns a copy of a struct of numbers.
func bytesOf[T any](v *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(v)), int(reflect.TypeFor[T]().Size()))...)
}
