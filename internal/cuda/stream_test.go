//go:build linux && cgo

package cuda_test

import (
	"errors"
	"testing"

	"github.com/halox/halox/internal/cuda"
)

func TestQueriesTellWaitingFromFailing(t *testing.T) {
	r := newRig(t, 1)
	ctx := r.contexts[0]
	stream, event := must(ctx.StreamCreate(0))(t), must(ctx.EventCreate(0))(t)
	for _, tc := range []struct {
		call  string
		query func() (bool, error)
	}{
		{"cuStreamQuery", func() (bool, error) { return ctx.StreamQuery(stream) }},
		{"cuEventQuery", func() (bool, error) { return ctx.EventQuery(event) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			if done, err := tc.query(); !done || err != nil {
				t.Errorf("done: %v, %v", done, err)
			}
			r.fake.Fail(tc.call, int(cuda.CodeNotReady), 0, 1)
			if done, err := tc.query(); done || err != nil {
				t.Errorf("not ready: %v, %v", done, err)
			}
			r.fake.Fail(tc.call, int(cuda.CodeLaunchFailed), 0, 1)
			if done, err := tc.query(); done || !errors.Is(err, cuda.CodeLaunchFailed) {
				t.Errorf("failed: %v, %v", done, err)
			}
		})
	}
}

func TestStreamsWaitForEventsOfOtherDevices(t *testing.T) {
	r := newRig(t, 2)
	a, b := r.contexts[0], r.contexts[1]
	streamA, streamB := must(a.StreamCreate(0))(t), must(b.StreamCreate(0))(t)
	event := must(a.EventCreate(cuda.EventNoTiming))(t)
	ok(t, a.EventRecord(event, streamA))
	ok(t, b.StreamWaitEvent(streamB, event))
}

func TestEventElapsed(t *testing.T) {
	ctx := newRig(t, 1).contexts[0]
	stream := must(ctx.StreamCreate(0))(t)
	start, end := must(ctx.EventCreate(cuda.EventDefault))(t), must(ctx.EventCreate(cuda.EventBlocking))(t)
	if _, err := ctx.EventElapsed(start, end); !errors.Is(err, cuda.CodeInvalidHandle) {
		t.Errorf("before recording: %v", err)
	}
	ok(t, ctx.EventRecord(start, stream))
	ok(t, ctx.EventRecord(end, stream))
	if ms := must(ctx.EventElapsed(start, end))(t); ms < 0 || ms > 1000 {
		t.Errorf("%v ms", ms)
	}
	untimed := must(ctx.EventCreate(cuda.EventNoTiming))(t)
	ok(t, ctx.EventRecord(untimed, stream))
	if _, err := ctx.EventElapsed(start, untimed); !errors.Is(err, cuda.CodeInvalidHandle) {
		t.Errorf("without timing: %v", err)
	}
}
