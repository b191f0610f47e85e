package ranks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// runOnHost runs the program once.
func runOnHost[T any](ctx context.Context, w *World, data []T) error {
	h := w.host
	h.state.begin(w.first, w.presets, w.sizes, w.channels)
	h.begin(w.first, w.windows)
	for i := range data {
		h.state.data[i] = &data[i]
	}
	courier, err := h.state.startCourier()
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
	courier.finish()
	if w.stuck != nil {
		return errors.Join(w.stuck, ofHere(h.state.reason()))
	}
	return h.state.reason() // by itself: endTogether compares it
}

// endWith has a run end when its context does, until the function is called that it returns.
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
			<-ended // the next run has the same state
		}
	}
}

// newHost makes the ranks of host devices.
func (w *World) newHost() {
	state := newHostState(hostShape{w.devices, w.before, w.owners, w.remote, w.ranks, w.options.Limit}, w.options.Queues)
	state.log, state.codes = &w.log, w.program.Errors
	w.host = newHostRanks(state, w.program.Host)
	w.resources.Add(w.host)
}

// reason is why the run ended before its time, or nil.
func (h *hostState) reason() error {
	h.failing.Lock()
	defer h.failing.Unlock()
	return h.failed
}

// join waits until the ranks of all devices have ended. Where it returns an error, some may still be there.
func (w *World) join() (failed error) {
	h := w.host.state
	var idle pause
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
			idle.nap()
		}
		idle = pause{}
	}
	return failed
}

// notEnded is the error of a run that is given up.
func (w *World) notEnded() error {
	return fmt.Errorf("ranks: %s has not ended %v after it should", w.program.Name, w.grace)
}
