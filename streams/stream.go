package streams

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Stream is a queue of work on one device.
type Stream struct {
	device   *Device
	queue    queue
	track    *track // nil unless the device is traced
	captured bool   // what is queued becomes part of a graph
	closed   atomic.Bool
}

// usable returns an error if there is no stream, it is closed, or its device dead.
func (s *Stream) usable() error {
	if s == nil {
		return errNoStream
	}
	if s.closed.Load() {
		return s.device.fail(errClosed, "use a stream")
	}
	return s.device.alive()
}

// Device returns the device of the stream.
func (s *Stream) Device() *Device { return s.device }

// Copy queues a copy of src to dst, which have the same length. Either may be
// memory of this device, of a peer, or pinned host memory.
func (s *Stream) Copy(dst, src Span) error { return s.CopyAs(CopyWork, dst, src) }

// CopyAs is Copy that says what kind of work the copy is, for one that is not part of an
// exchange.
func (s *Stream) CopyAs(work Work, dst, src Span) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := cmp.Or(dst.Check(), src.Check()); err != nil {
		return s.device.fail(err, "copy to %v from %v", dst, src)
	}
	if dst.Length != src.Length {
		return s.device.fail(errors.New("the spans differ in length"), "copy to %v from %v", dst, src)
	}
	if dst.Length == 0 {
		return nil
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.copy(dst, src); err != nil {
		return s.device.fail(err, "copy to %v from %v", dst, src)
	}
	return s.after(copied(work, dst.Memory, src.Memory, dst.Length))
}

// Launch queues a kernel of this device.
func (s *Stream) Launch(k *Kernel) error {
	if err := s.usable(); err != nil {
		return err
	}
	if k == nil {
		return s.device.fail(errors.New("the kernel is nil"), "launch")
	}
	if k.device != s.device {
		return s.device.fail(fmt.Errorf("the kernel is one of device %v", k.device), "launch %s", k.name)
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.launch(k.launcher); err != nil {
		return s.device.fail(err, "launch %s", k.name)
	}
	return s.after(Operation{Name: k.name, Work: k.work})
}

// Record queues the event: it is done once all that was queued before it is.
func (s *Stream) Record(e *Event) error {
	if err := s.usable(); err != nil {
		return err
	}
	if e == nil {
		return s.device.fail(errors.New("the event is nil"), "record an event")
	}
	if e.device != s.device {
		return s.device.fail(fmt.Errorf("the event is one of device %v", e.device), "record an event")
	}
	if err := s.queue.record(e.marker); err != nil {
		return s.device.fail(err, "record an event")
	}
	return nil
}

// Wait makes all that is queued later wait for the last Record of e that was
// called before this call. The event may be one of another device of the same
// platform. The host does not wait.
func (s *Stream) Wait(e *Event) error {
	if err := s.usable(); err != nil {
		return err
	}
	if e == nil {
		return s.device.fail(errors.New("the event is nil"), "wait for an event")
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.wait(e.marker); err != nil {
		return s.device.fail(err, "wait for an event of device %v", e.device)
	}
	return s.after(Operation{Name: "wait", Work: WaitWork, With: e.device})
}

// Sync makes the host wait until the stream has done all that was queued, for
// at most limit, and returns what went wrong on it.
func (s *Stream) Sync(limit time.Duration) error {
	if s == nil {
		return errNoStream
	}
	if s.closed.Load() {
		return s.device.fail(errClosed, "wait for a stream")
	}
	done, err := s.await(limit)
	if err == nil && !done {
		err = notDone(limit)
	}
	return s.device.fail(err, "wait for a stream")
}

// await waits until the stream is done, and no longer than limit.
func (s *Stream) await(limit time.Duration) (done bool, err error) {
	poll := newBackoff(spinFor(syncThreads))
	for {
		if err := s.device.alive(); err != nil {
			return false, err
		}
		if done, err := s.queue.idle(); done || err != nil {
			return done, err
		}
		if poll.pause() > limit {
			return false, nil
		}
	}
}

func notDone(limit time.Duration) error { return fmt.Errorf("not done after %v", limit) }

// Close waits for the stream, not longer than 10 s, and frees it. A stream that
// takes longer kills its device, since to free anything there would wait for
// it. Closing twice is no error.
func (s *Stream) Close() error {
	if s.captured {
		return s.device.fail(errCaptured, "close a stream")
	}
	if !s.device.drop(s) {
		return nil
	}
	s.closed.Store(true)
	if s.device.alive() != nil {
		s.queue.close()
		return nil
	}
	done, err := s.await(s.device.grace)
	if err == nil && !done {
		err = fmt.Errorf("%w: %w", errHangs, notDone(s.device.grace))
	}
	if gone := s.queue.close(); err == nil {
		err = gone
	}
	return s.device.fail(err, "close a stream")
}
