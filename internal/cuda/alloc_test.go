//go:build linux && cgo

package cuda_test

import (
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/test"
)

// steps are what a time step calls, by name.
func steps(t *testing.T, r *rig) map[string]func() error {
	ctx := r.contexts[0]
	s := test.Must(ctx.StreamCreate(0))(t)
	e := test.Must(ctx.EventCreate(0))(t)
	p, q := test.Must(ctx.MemAlloc(64))(t), test.Must(ctx.MemAlloc(64))(t)
	_, host := pinned(t, ctx, 64)
	l := test.Must(cuda.NewLaunch(kernel(t, ctx, "k", 16), grid, block, 0, make([]byte, 16)))(t)
	t.Cleanup(l.Free)
	small := cuda.Extent{Width: 8, Height: 2, Depth: 2}
	return map[string]func() error{
		"Launch":          func() error { return ctx.Launch(l, s) },
		"MemcpyHtoDAsync": func() error { return ctx.MemcpyHtoDAsync(p, host, 64, s) },
		"MemcpyDtoHAsync": func() error { return ctx.MemcpyDtoHAsync(host, p, 64, s) },
		"MemcpyDtoDAsync": func() error { return ctx.MemcpyDtoDAsync(p, q, 64, s) },
		"MemcpyPeerAsync": func() error { return ctx.MemcpyPeerAsync(p, ctx, q, ctx, 64, s) },
		"Memcpy3DAsync": func() error {
			return ctx.Memcpy3DAsync(cuda.Pitched{Device: p, Pitch: 16, Rows: 2}, cuda.Pitched{Host: host, Pitch: 8, Rows: 3}, small, s)
		},
		"Memcpy3DPeerAsync": func() error {
			return ctx.Memcpy3DPeerAsync(cuda.Pitched{Device: p, Pitch: 16, Rows: 2}, ctx,
				cuda.Pitched{Device: q, Pitch: 8, Rows: 3}, ctx, small, s)
		},
		"MemsetD8Async":     func() error { return ctx.MemsetD8Async(p, 0, 64, s) },
		"EventRecord":       func() error { return ctx.EventRecord(e, s) },
		"EventQuery":        func() error { _, err := ctx.EventQuery(e); return err },
		"EventSynchronize":  func() error { return ctx.EventSynchronize(e) },
		"EventElapsed":      func() error { _, err := ctx.EventElapsed(e, e); return err },
		"StreamWaitEvent":   func() error { return ctx.StreamWaitEvent(s, e) },
		"StreamQuery":       func() error { _, err := ctx.StreamQuery(s); return err },
		"StreamSynchronize": func() error { return ctx.StreamSynchronize(s) },
		"Synchronize":       func() error { return ctx.Synchronize() },
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	r := newRig(t, 1)
	calls := steps(t, r)
	test.Check(t, calls["EventRecord"]())
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			test.Check(t, call())
			if n := testing.AllocsPerRun(100, func() { _ = call() }); n != 0 {
				t.Errorf("%v allocations a call", n)
			}
		})
	}
}
