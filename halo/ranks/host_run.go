package ranks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// runOnHost runs the program once.
func runOnHost[T any](ctx context.Context, w *World, data []T) error {
	h := newHostState(w.devices, w.ranks, w.options.Limit, w.options.Queues, w.first)
	for i := range data {
		h.data = append(h.data, &data[i])
	}
	for slot, memory := range w.presets {
		h.windows[slot] = memory
	}
	h.channels = newHostChannels(w.channels, w.first)
	w.host, h.log, h.codes = h, &w.log, w.program.Errors
	for _, m := range w.members {
		if err := errors.Join(m.stream.Launch(m.kernel), m.stream.Record(m.ended)); err != nil {
			h.end(err)
			break
		}
	}
	stop := context.AfterFunc(ctx, func() { h.end(context.Cause(ctx)) })
	defer stop()
	var errs []error
	for i, m := range w.members {
		errs = append(errs, w.join(m))
		m.took = h.took[i]
	}
	return errors.Join(append(errs, h.failed)...)
}

// join waits until the ranks of a device have ended.
func (w *World) join(m *member) error {
	for over := time.Now(); ; time.Sleep(20 * time.Microsecond) {
		done, err := m.ended.Done()
		if done || err != nil {
			return err
		}
		if !w.host.over.Load() {
			over = time.Now()
		}
		if grace := w.options.Limit + 10*time.Second; time.Since(over) > grace {
			return fmt.Errorf("ranks: %s has not ended %v after it should", w.program.Name, grace)
		}
	}
}

// runRanks runs the ranks of a host device.
func (w *World) runRanks(device int) {
	var all sync.WaitGroup
	for i := range w.ranks {
		r := &Rank{state: w.host, device: device, local: i, windows: w.windows}
		for tag := range r.consumed {
			r.consumed[tag] = w.first
		}
		all.Go(func() { w.runRank(r) })
	}
	all.Wait()
}

func (w *World) runRank(r *Rank) {
	defer func() {
		if p := recover(); p != nil {
			r.fail(failure{err: fmt.Errorf("its function panicked: %v", p)})
		}
	}()
	if r.Barrier(All) {
		w.program.Host(r)
		r.Barrier(All)
	}
}
