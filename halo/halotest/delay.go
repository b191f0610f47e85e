package halotest

import (
	"time"

	"github.com/halox/halox/streams"
)

// delayTime is how long a CPU stream is delayed; delayCopies copies of delayBytes from pinned memory delay a
// GPU stream about as long.
const (
	delayTime   = 5 * time.Millisecond
	delayBytes  = 8 << 20
	delayCopies = 32
)

// delay is work that keeps a stream busy for some milliseconds and uses no field. A device that should wait
// for the delayed subdomain and does not reads or overwrites wrong values.
type delay struct {
	sleep    *streams.Kernel // on CPU devices
	dst, src *streams.Memory // on GPUs
}

// newDelay makes a delay for a device; open closes it.
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
