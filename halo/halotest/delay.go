package halotest

import (
	"time"

	"github.com/halox/halox/streams"
)

// delayTime is how long a host stream is held up, and delayCopies copies of
// delayBytes from pinned memory keep a GPU about as long.
const (
	delayTime   = 5 * time.Millisecond
	delayBytes  = 8 << 20
	delayCopies = 32
)

// delay is work that keeps a stream busy for some milliseconds and touches no
// field. The subdomain whose stream it is queued on comes late, and who should wait
// for it and does not reads or overwrites the wrong values.
type delay struct {
	sleep    *streams.Kernel // where Go runs
	dst, src *streams.Memory // else
}

// newDelay makes a delay for a device, to be closed with open.
func newDelay(d *streams.Device, open *streams.Resources) (l *delay, err error) {
	l = &delay{}
	if d.GoKernels {
		l.sleep, err = d.NewKernel(streams.KernelSpec{Name: "delay", Run: func() { time.Sleep(delayTime) }})
		if err != nil {
			return nil, err
		}
		open.Add(l.sleep)
		return l, nil
	}
	if l.dst, err = d.Alloc(delayBytes); err != nil {
		return nil, err
	}
	open.Add(l.dst)
	if l.src, err = d.AllocPinned(delayBytes); err != nil {
		return nil, err
	}
	open.Add(l.src)
	return l, nil
}

// queue queues the delay.
func (l *delay) queue(s *streams.Stream) error {
	if l.sleep != nil {
		return s.Launch(l.sleep)
	}
	for range delayCopies {
		if err := s.Copy(l.dst.All(), l.src.All()); err != nil {
			return err
		}
	}
	return nil
}
