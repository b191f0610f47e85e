//go:build linux && cgo

package streams_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/streams"
)

// web is streams of two GPUs of a fake driver, with something to capture.
type web struct {
	*rig
	one, two   *streams.Stream
	in, out    *streams.Memory // pinned
	near, far  *streams.Memory
	here, away *streams.Event
	kernel     *streams.Kernel // of the second device
}

func newWeb(t *testing.T) *web {
	r := newRig(t, 2)
	a, b := r.devices[0], r.devices[1]
	check(t, a.EnablePeer(b), b.EnablePeer(a))
	m := must(b.LoadModule(cudafake.Image(map[string]int{"k": 4})))(t)
	return &web{
		rig: r, one: must(a.NewStream(streams.Normal))(t), two: must(b.NewStream(streams.Urgent))(t),
		in: must(a.AllocPinned(64))(t), out: must(b.AllocPinned(64))(t),
		near: must(a.Alloc(64))(t), far: must(b.Alloc(64))(t),
		here: must(a.NewEvent())(t), away: must(b.NewEvent())(t),
		kernel: must(b.NewKernel(streams.KernelSpec{
			Name: "k", Function: must(m.Function("k"))(t), Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Argument: []byte("then"), Early: true,
		}))(t),
	}
}

func (w *web) weave() error {
	for _, call := range []func() error{
		func() error { return w.one.Copy(w.near.All(), w.in.All()) },
		func() error { return w.one.Copy(w.far.All(), w.near.All()) },
		func() error { return w.one.Record(w.here) },
		func() error { return w.two.Wait(w.here) },
		func() error { return w.two.Launch(w.kernel) },
		func() error { return w.two.Launch(w.kernel) },
		func() error { return w.two.Copy(w.out.All(), w.far.All()) },
		func() error { return w.two.Launch(w.kernel) },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

func (w *web) capture() (*streams.Graph, error) {
	return streams.Capture(w.one, []*streams.Stream{w.two}, w.weave)
}

// works fails the test unless both streams do what they are given, at once.
func (w *web) works(t *testing.T) {
	t.Helper()
	w.in.Bytes()[0]++
	check(t, w.weave(), w.one.Sync(limit), w.two.Sync(limit))
	if w.out.Bytes()[0] != w.in.Bytes()[0] {
		t.Error("the streams no longer do what they are given")
	}
}

func TestCUDAGraph(t *testing.T) {
	w := newWeb(t)
	g := must(w.capture())(t)
	if n := len(w.fake.Launches()); n != 0 {
		t.Errorf("%d launches in the capture", n)
	}
	w.in.Bytes()[0] = 7
	before := w.fake.Calls("cuMemcpyDtoDAsync") + w.fake.Calls("cuLaunchKernelEx") + w.fake.Calls("cuEventRecord")
	check(t, g.Launch(), w.one.Sync(limit))
	if w.out.Bytes()[0] != 7 {
		t.Error("what was captured was not done, or not in order")
	}
	if after := w.fake.Calls("cuMemcpyDtoDAsync") + w.fake.Calls("cuLaunchKernelEx") + w.fake.Calls("cuEventRecord"); after != before {
		t.Errorf("%d calls for a launch", after-before)
	}
	if n := w.fake.Calls("cuMemcpyPeerAsync"); n != 0 {
		t.Errorf("%d peer copies, which are not captured", n)
	}
	if n := testing.AllocsPerRun(100, func() { check(t, g.Launch()) }); n > 0 {
		t.Errorf("%v allocations a launch", n)
	}
	if n := w.fake.Live().Graphs; n != 1 {
		t.Errorf("%d graphs and executable graphs live", n)
	}
	check(t, g.Close(), g.Close())
	w.works(t)
	if w.fake.Calls("cuMemcpyPeerAsync") != 1 {
		t.Error("outside of a capture it was no peer copy")
	}
}

// In a graph a kernel begins early only after another of its stream.
func TestCUDAGraphOfEarlyKernels(t *testing.T) {
	w := newWeb(t)
	g := must(w.capture())(t)
	check(t, g.Launch())
	var early []bool
	for _, l := range w.fake.Launches() {
		early = append(early, l.Early)
	}
	if len(early) != 3 || early[0] || !early[1] || early[2] {
		t.Errorf("early after a wait, a kernel and a copy: %v", early)
	}
}

// Whatever call of the driver fails, nothing is left behind, the streams work, and the
// next capture does too.
func TestCUDACaptureThatFails(t *testing.T) {
	for _, tc := range []struct {
		call string
		skip int
	}{
		{"cuEventCreate", 0}, {"cuEventCreate", 1}, {"cuStreamBeginCapture", 0}, {"cuEventRecord", 0}, {"cuStreamWaitEvent", 0},
		{"cuMemcpyHtoDAsync", 0}, {"cuMemcpyDtoDAsync", 0}, {"cuEventRecord", 1}, {"cuStreamWaitEvent", 1}, {"cuLaunchKernelEx", 1},
		{"cuMemcpyDtoHAsync", 0}, {"cuEventRecord", 2}, {"cuStreamWaitEvent", 2},
		{"cuGraphInstantiateWithFlags", 0}, {"cuGraphDestroy", 0}, {"cuGraphUpload", 0},
	} {
		t.Run(tc.call, func(t *testing.T) {
			w := newWeb(t)
			live := w.fake.Live()
			w.fake.Fail(tc.call, int(cuda.CodeOutOfMemory), tc.skip, 1)
			g, err := w.capture()
			if g != nil || !errors.Is(err, cuda.CodeOutOfMemory) || !strings.Contains(err.Error(), tc.call) {
				t.Errorf("graph %v, error %v", g, err)
			}
			now := w.fake.Live()
			if tc.call == "cuGraphDestroy" {
				now.Graphs-- // the driver kept it
			}
			if now != live {
				t.Errorf("left behind: %+v, before %+v", now, live)
			}
			w.works(t)
			g = must(w.capture())(t)
			check(t, g.Launch(), g.Close())
		})
	}
}

// A driver that ends a capture with an error has freed the streams.
func TestCUDACaptureThatIsInvalid(t *testing.T) {
	w := newWeb(t)
	live := w.fake.Live()
	foreign := must(w.devices[1].NewStream(streams.Normal))(t)
	_, err := streams.Capture(w.one, []*streams.Stream{w.two}, func() error {
		// A stream that nobody named joins, and is left alone.
		if err := w.one.Record(w.here); err != nil {
			return err
		}
		return errors.Join(foreign.Wait(w.here), foreign.Launch(w.kernel))
	})
	if !errors.Is(err, cuda.CodeCaptureUnjoined) {
		t.Errorf("got %v", err)
	}
	check(t, foreign.Close())
	if now := w.fake.Live(); now != live {
		t.Errorf("left behind: %+v, before %+v", now, live)
	}
	w.works(t)
}

func TestCUDALaunchOfAGraphThatFails(t *testing.T) {
	w := newWeb(t)
	g := must(w.capture())(t)
	w.fake.Fail("cuGraphLaunch", int(cuda.CodeOutOfMemory), 0, 1)
	if err := g.Launch(); !errors.Is(err, cuda.CodeOutOfMemory) || !strings.HasPrefix(err.Error(), "device cuda 0: launch a graph: device 0: cuGraphLaunch") {
		t.Errorf("got %v", err)
	}
	check(t, g.Launch())
	w.fake.Kill(1, int(cuda.CodeIllegalAddress))
	if err := g.Launch(); !cuda.IsSticky(err) {
		t.Errorf("got %v", err)
	}
	if err := w.two.Sync(limit); !cuda.IsSticky(err) || w.devices[1].Err() == nil {
		t.Errorf("got %v", err)
	}
	check(t, g.Close())
	w.fake.Kill(1, 0) // for what the rig counts
}

// Streams of one platform alone are captured together.
func TestCUDACaptureWithAHostDevice(t *testing.T) {
	w := newWeb(t)
	host := must(streams.HostPlatform(1).Open())(t)
	defer streams.CloseAll(host)
	s := must(host[0].NewStream(streams.Normal))(t)
	for _, two := range [][]*streams.Stream{{w.one, s}, {s, w.one}} {
		if g, err := streams.Capture(two[0], two[1:], func() error { return nil }); g != nil || err == nil || !strings.Contains(err.Error(), "the streams are not all of") {
			t.Errorf("graph %v, %v", g, err)
		}
	}
}
