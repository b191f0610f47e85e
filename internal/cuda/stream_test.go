//go:build linux && cgo

package cuda_test

import (
	"errors"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/test"
)

func TestQueriesTellWaitingFromFailing(t *testing.T) {
	r := newRig(t, 1)
	ctx := r.contexts[0]
	stream, event := test.Must(ctx.StreamCreate(0))(t), test.Must(ctx.EventCreate(0))(t)
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
	streamA, streamB := test.Must(a.StreamCreate(0))(t), test.Must(b.StreamCreate(0))(t)
	event := test.Must(a.EventCreate(cuda.EventNoTiming))(t)
	test.Check(t, a.EventRecord(event, streamA))
	test.Check(t, b.StreamWaitEvent(streamB, event))
}
