//go:build linux && cgo

package cuda_test

import (
	"errors"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/test"
)

// chain is streams of two devices and a text that goes over both: from the host to the
// first, to the second, and back.
type chain struct {
	*rig
	a, b       *cuda.Context
	one, two   cuda.Stream
	fork, join cuda.Event
	near, far  cuda.DevicePtr
	text, back []byte
	copies     []func() error
}

func newChain(t *testing.T) *chain {
	r := newRig(t, 2)
	c := &chain{rig: r, a: r.contexts[0], b: r.contexts[1]}
	test.Check(t, errors.Join(c.a.EnablePeerAccess(c.b), c.b.EnablePeerAccess(c.a)))
	c.one, c.two = test.Must(c.a.StreamCreate(0))(t), test.Must(c.b.StreamCreate(0))(t)
	c.fork, c.join = test.Must(c.a.EventCreate(cuda.EventNoTiming))(t), test.Must(c.b.EventCreate(cuda.EventNoTiming))(t)
	c.near, c.far = test.Must(c.a.MemAlloc(4))(t), test.Must(c.b.MemAlloc(4))(t)
	text, from := pinned(t, c.a, 4)
	back, to := pinned(t, c.b, 4)
	c.text, c.back = text, back
	c.copies = []func() error{
		func() error { return c.a.MemcpyHtoDAsync(c.near, from, 4, c.one) },
		func() error { return c.a.MemcpyDtoDAsync(c.far, c.near, 4, c.one) },
		func() error { return c.a.EventRecord(c.fork, c.one) },
		func() error { return c.b.StreamWaitEvent(c.two, c.fork) },
		func() error { return c.b.MemcpyDtoHAsync(to, c.far, 4, c.two) },
		func() error { return c.b.EventRecord(c.join, c.two) },
		func() error { return c.a.StreamWaitEvent(c.one, c.join) },
	}
	return c
}

// queue makes the calls of the chain with those numbers.
func (c *chain) queue(t *testing.T, numbers ...int) {
	t.Helper()
	for _, i := range numbers {
		test.Check(t, c.copies[i]())
	}
}

// What is captured is done by each launch, and not before.
func TestGraphOfTwoDevices(t *testing.T) {
	c := newChain(t)
	test.Check(t, c.a.StreamBeginCapture(c.one))
	c.queue(t, 0, 1, 2, 3, 4, 5, 6)
	g := test.Must(c.a.StreamEndCapture(c.one))(t)
	x := test.Must(c.a.GraphInstantiate(g))(t)
	test.Check(t, errors.Join(c.a.GraphDestroy(g), c.a.GraphUpload(x, c.one)))
	for _, text := range []string{"once", "more"} {
		copy(c.text, text)
		if string(c.back) == text {
			t.Error("done before the launch")
		}
		test.Check(t, c.a.GraphLaunch(x, c.one))
		if string(c.back) != text {
			t.Errorf("got %q, want %q", c.back, text)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = c.a.GraphLaunch(x, c.one) }); n != 0 {
		t.Errorf("%v allocations a launch", n)
	}
	test.Check(t, c.a.GraphExecDestroy(x))
	if n := c.fake.Live().Graphs; n != 0 {
		t.Errorf("%d graphs left", n)
	}
	for _, done := range []error{c.a.GraphDestroy(0), c.a.GraphExecDestroy(0), c.a.GraphLaunch(0, c.one)} {
		if !errors.Is(done, cuda.CodeInvalidHandle) {
			t.Errorf("a graph that is none: %v", done)
		}
	}
}

// The fake finds a dependency that is not there: the second device copies away what has
// not come yet.
func TestTheFakeFindsMissingDependencies(t *testing.T) {
	c := newChain(t)
	copy(c.text, "text")
	test.Check(t, c.a.StreamBeginCapture(c.one))
	c.queue(t, 2, 3, 0, 1, 4, 5, 6)
	x := test.Must(c.a.GraphInstantiate(test.Must(c.a.StreamEndCapture(c.one))(t)))(t)
	test.Check(t, c.a.GraphLaunch(x, c.one))
	if string(c.back) == "text" {
		t.Error("the copies came in the order of the calls")
	}
}

// What a capture forbids fails, and once it has ended its streams work again.
func TestWhatACaptureForbids(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(c *chain) error
		code cuda.Code
		end  cuda.Code // of the end of the capture
	}{
		{"to ask for a stream", func(c *chain) error { _, err := c.a.StreamQuery(c.one); return err }, cuda.CodeCaptureUnsupported, cuda.CodeCaptureInvalidated},
		{"to wait for a stream", func(c *chain) error { return c.a.StreamSynchronize(c.one) }, cuda.CodeCaptureUnsupported, cuda.CodeCaptureInvalidated},
		{"to ask for an event of it", func(c *chain) error { _, err := c.a.EventQuery(c.fork); return err }, cuda.CodeCapturedEvent, cuda.CodeCaptureInvalidated},
		{"to wait for an event from outside", func(c *chain) error { return c.a.StreamWaitEvent(c.one, c.join) }, cuda.CodeCaptureIsolation, cuda.CodeCaptureInvalidated},
		{"a copy to a peer", func(c *chain) error { return c.a.MemcpyPeerAsync(c.far, c.b, c.near, c.a, 4, c.one) }, cuda.CodeCaptureUnsupported, 0},
		{"a second capture", func(c *chain) error { return c.a.StreamBeginCapture(c.one) }, cuda.CodeIllegalState, 0},
		{"to end another's", func(c *chain) error { _, err := c.b.StreamEndCapture(c.two); return err }, cuda.CodeIllegalState, 0},
		{"to leave work behind", func(c *chain) error { return errors.Join(c.copies[3](), c.copies[4]()) }, 0, cuda.CodeCaptureUnjoined},
		{"to be ended by one that joined", func(c *chain) error {
			joined := c.copies[3]()
			_, err := c.b.StreamEndCapture(c.two)
			return errors.Join(joined, err)
		}, cuda.CodeCaptureUnmatched, cuda.CodeCaptureInvalidated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newChain(t)
			test.Check(t, c.a.StreamBeginCapture(c.one))
			c.queue(t, 0, 2)
			if err := tc.do(c); tc.code == 0 && err != nil || tc.code != 0 && !errors.Is(err, tc.code) {
				t.Errorf("got %v, want %d", err, tc.code)
			}
			g, err := c.a.StreamEndCapture(c.one)
			if tc.end != 0 && (g != 0 || !errors.Is(err, tc.end)) || tc.end == 0 && err != nil {
				t.Errorf("its end: graph %d, %v", g, err)
			}
			c.queue(t, 0, 1, 2, 3, 4, 5, 6)
			if _, err := c.a.StreamQuery(c.one); err != nil {
				t.Error(err)
			}
		})
	}
}
