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
	if h == nil { // ranks of a run before may still be there
		h = w.newHost()
	}
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
	var failed error
	for i, m := range w.members {
		failed = errors.Join(failed, w.join(m))
		m.took = append(m.took[:0], h.state.took[i]...)
	}
	courier.finish()
	if failed == nil {
		return h.state.reason()
	}
	w.host = nil
	return errors.Join(failed, h.state.reason())
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
func (w *World) newHost() *hostRanks {
	state := newHostState(hostShape{w.devices, w.before, w.owners, w.remote, w.ranks, w.options.Limit}, w.options.Queues)
	state.log, state.codes = &w.log, w.program.Errors
	w.host = newHostRanks(state, w.program.Host)
	w.resources.Add(w.host)
	return w.host
}

// reason is why the run ended before its time, or nil.
func (h *hostState) reason() error {
	h.failing.Lock()
	defer h.failing.Unlock()
	return h.failed
}

// join waits until the ranks of a device have ended.
func (w *World) join(m *member) error {
	h := w.host.state
	var idle pause
	for over := time.Now(); ; idle.nap() {
		done, err := m.ended.Done()
		if done || err != nil {
			return err
		}
		if !h.over.Load() {
			over = time.Now()
		}
		if grace := w.options.Limit + 10*time.Second; time.Since(over) > grace {
			w.stuck = fmt.Errorf("ranks: %s has not ended %v after it should", w.program.Name, grace)
			return w.stuck
		}
	}
}
