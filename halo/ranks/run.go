package ranks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/streams"
)

// Run runs the program: it copies the i-th data to device i, where all its ranks share it, launches all ranks,
// waits until all have ended, and copies the data back. On a GPU, T holds no pointers and lies in memory as the
// struct of the kernel does. When the context ends, so does the run, with its cause as the error.
//
// A rank that fails ends the run: the error names the first one, and wraps ErrTimeout or ErrArgument where
// it is one.
func Run[T any](ctx context.Context, w *World, data []T) error {
	if len(data) != len(w.devices) {
		return fmt.Errorf("ranks: %s: data of %d devices for %d", w.program.Name, len(data), len(w.devices))
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if w.running {
		return fmt.Errorf("ranks: %s is running already", w.program.Name)
	}
	w.running = true
	defer func() { w.running = false }()
	if w.devices[0].GoKernels {
		return runOnHost(ctx, w, data)
	}
	if err := w.layChannels(); err != nil {
		return err
	}
	size := int64(unsafe.Sizeof(data[0]))
	for i, m := range w.members {
		if err := m.load(w, size); err != nil {
			return err
		}
		if size > 0 {
			*(*T)(unsafe.Pointer(&m.copied.Bytes()[0])) = data[i]
		}
	}
	err := w.runOnGPUs(ctx, size)
	for i, m := range w.members {
		if size > 0 {
			data[i] = *(*T)(unsafe.Pointer(&m.copied.Bytes()[0]))
		}
	}
	return err
}

// load has memory for so many bytes of the caller's data, and the launch told of it.
func (m *member) load(w *World, size int64) (err error) {
	if m.data == nil || m.data.Size() < size {
		if m.data, err = m.device.Alloc(max(size, 8)); err != nil {
			return err
		}
		w.resources.Add(m.data)
		if m.copied, err = m.device.AllocPinned(max(size, 8)); err != nil {
			return err
		}
		w.resources.Add(m.copied)
	}
	arg := (*argument)(unsafe.Pointer(&m.kernel.Argument()[0]))
	arg.data, arg.windows = m.data.Address(), w.windows
	if m.ends != nil {
		arg.ends = m.ends.Address()
	}
	return nil
}

// runOnGPUs resets all boards before it launches the first rank.
func (w *World) runOnGPUs(ctx context.Context, size int64) error {
	b := w.board()
	for _, m := range w.members {
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
		if err := m.stream.Sync(w.options.Limit); err != nil {
			return err
		}
	}
	var failed error
	proxy := w.startProxy()
	for _, m := range w.members {
		if err := errors.Join(m.stream.Launch(m.kernel), m.stream.Record(m.ended)); err != nil {
			failed = err
			w.end()
			break
		}
	}
	if err := w.watch(ctx, proxy); err != nil {
		failed = errors.Join(failed, err)
	}
	failed = errors.Join(failed, proxy.finish())
	if failed != nil {
		return failed
	}
	for _, m := range w.members {
		timed := m.staging.Span(b.timings(), b.counts()-b.timings())
		errs := []error{m.stream.Copy(timed, m.board.Span(timed.Offset, timed.Length))}
		if size > 0 {
			errs = append(errs, m.stream.Copy(m.copied.Span(0, size), m.data.Span(0, size)))
		}
		if err := errors.Join(append(errs, m.stream.Sync(w.options.Limit))...); err != nil {
			return err
		}
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

// end tells all ranks that the run ends.
func (w *World) end() {
	for _, m := range w.members {
		atomic.StoreUint64(&m.controls().ended, 1)
	}
}

// watch waits until the ranks of all devices have ended. It ends all where one has failed, where a device has,
// and when the context ends.
func (w *World) watch(ctx context.Context, proxy *proxy) error {
	const pause = 20 * time.Microsecond
	var failed error
	fail := func(err error) {
		if err != nil && failed == nil {
			failed = err
			w.end()
		}
	}
	running := make(map[*member]bool)
	for _, m := range w.members {
		running[m] = true
	}
	for begun := time.Now(); len(running) > 0; {
		for m := range running {
			done, err := m.ended.Done()
			if done || err != nil {
				delete(running, m)
			}
			fail(err)
		}
		for _, m := range w.members {
			w.log.read(m.device, m.lines, m.controls())
			fail(m.failure(w))
		}
		fail(context.Cause(ctx))
		if proxy.gaveUp() {
			fail(errProxy)
		}
		if failed == nil {
			begun = time.Now()
		}
		if grace := w.options.Limit + 10*time.Second; time.Since(begun) > grace {
			return errors.Join(failed, fmt.Errorf("ranks: %s has not ended %v after that", w.program.Name, grace))
		}
		time.Sleep(pause)
	}
	return failed
}

// failure returns the error of the first rank of a GPU that has failed.
func (m *member) failure(w *World) error {
	c := m.controls()
	if atomic.LoadUint64(&c.written) == 0 {
		return nil
	}
	f := failure{why: reason(c.failure), rank: int(c.rank), expected: int64(c.expected), came: int64(c.came), detail: int64(c.detail)}
	if f.why == byProgram {
		f.err = w.program.Errors[f.expected]
	}
	return f.describe(m.device, w.options.Limit)
}

// Timings returns what the ranks of a device have timed in the last run, in the order of their starts.
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
