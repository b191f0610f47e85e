package streams

import (
	"errors"
	"fmt"
)

// capturedQueue stands for the queue of a stream that is being captured. It refuses on
// every backend what a GPU would refuse.
type capturedQueue struct {
	queue
	recorded map[marker]bool // events that were recorded in this capture
}

var (
	errCaptured  = errors.New("it is being captured")
	errOutside   = errors.New("what is captured waits for events that are recorded in the same capture")
	errPeerBoxes = fmt.Errorf("%w: a box from device to device is not captured", ErrUnsuited)
)

func (q *capturedQueue) copyBox(b box) error {
	to, from := b.dst.Span.Memory, b.src.Span.Memory
	if to.device != from.device && !to.pinned && !from.pinned {
		return errPeerBoxes
	}
	return q.queue.copyBox(b)
}

func (q *capturedQueue) record(m marker) error {
	q.recorded[m] = true
	return q.queue.record(m)
}

func (q *capturedQueue) wait(m marker) error {
	if !q.recorded[m] {
		return errOutside
	}
	return q.queue.wait(m)
}

func (q *capturedQueue) idle() (bool, error) { return false, errCaptured }
func (q *capturedQueue) close() error        { return errCaptured }
