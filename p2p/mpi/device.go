package mpi

import (
	"errors"
	"time"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/streams"
)

// whole carries a message as it lies in the memory of the device, of which MPI is given the address. The host waits until what
// was queued before is done: MPI knows nothing of streams.
type whole struct {
	*message
	sends   bool
	request binding.Request
}

// carry implements carrier.
func (w *whole) carry() error {
	if err := w.ready.Sync(w.processes.options.Limit); err != nil {
		return err
	}
	if err := w.span.Memory.Device().Within(w.travel); err != nil {
		return err
	}
	return w.over()
}

// travel gives MPI the span, and waits until it is done. MPI copies to and from the GPU in the context of the thread that calls it.
func (w *whole) travel() error {
	began := time.Now()
	if err := w.hand(); err != nil {
		return err
	}
	if err := w.request.Wait(w.processes.failure.ctx, w.processes.options.Limit); err != nil {
		return err
	}
	w.sent(began)
	return nil
}

// hand gives MPI the span.
func (w *whole) hand() error {
	at, bytes := addressOf(w.span), int(w.span.Length)
	if w.sends {
		return w.processes.data.IsendAt(&w.request, at, bytes, w.other, w.tag)
	}
	return w.processes.data.IrecvAt(&w.request, at, bytes, w.other, w.tag)
}

// progress implements carrier: nothing comes before it is asked for.
func (*whole) progress() {}

// quiet implements carrier.
func (w *whole) quiet() bool {
	done, err := w.request.Test()
	return done && err == nil
}

// addressOf returns where a span lies for who gets addresses of a GPU's memory.
func addressOf(s streams.Span) uintptr { return uintptr(s.Address()) }

// errNoDeviceMemory says why host devices have one network.
var errNoDeviceMemory = errors.New("memory of host devices is the host's: MPI gets it in pieces")
