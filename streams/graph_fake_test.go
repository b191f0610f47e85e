//go:build linux && cgo

package streams

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

func init() {
	open := func(t testing.TB, n int) []*Device { return newRig(t, n).devices }
	backends = append(backends, backend{"fake GPU", open, func(t testing.TB, d *Device) *Kernel {
		m := test.Must(d.LoadModule(cudafake.Image(map[string]int{"k": 4})))(t)
		return test.Must(d.NewKernel(KernelSpec{
			Name: "k", Function: test.Must(m.Function("k"))(t), Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1},
			Argument: []byte("then"), Early: true,
		}))(t)
	}})
}

// web is a loom of two GPUs of a fake driver.
type web struct {
	*rig
	*loom
}

func newWeb(t *testing.T) *web {
	r := newRig(t, 2)
	return &web{r, loomOf(t, backends[len(backends)-1], r.devices)}
}

// A peer copy is captured like one within a device, and a launch is a single driver call.
func TestCUDAGraph(t *testing.T) {
	w := newWeb(t)
	g := test.Must(w.capture(w.weave))(t)
	captured := []string{"cuMemcpyDtoDAsync", "cuLaunchKernelEx", "cuEventRecord"}
	before := 0
	for _, call := range captured {
		before += w.fake.Calls(call)
	}
	test.Check(t, g.Launch(), w.one.Sync(testLimit))
	for _, call := range captured {
		before -= w.fake.Calls(call)
	}
	if live := w.fake.Live().Graphs; before != 0 || live != 1 || w.fake.Calls("cuMemcpyPeerAsync") != 0 {
		t.Errorf("got %d calls per launch, %d graphs, %d peer copies", -before, live, w.fake.Calls("cuMemcpyPeerAsync"))
	}
	test.Check(t, g.Close())
	w.works()
	if w.fake.Calls("cuMemcpyPeerAsync") != 1 {
		t.Error("outside of a capture: must be a peer copy")
	}
}

// In a graph a kernel starts early only after another kernel of its stream.
func TestCUDAGraphOfEarlyKernels(t *testing.T) {
	w := newWeb(t)
	g := test.Must(w.capture(w.weave))(t)
	test.Check(t, g.Launch())
	var early []bool
	for _, l := range w.fake.Launches() {
		early = append(early, l.Early)
	}
	if len(early) != 3 || early[0] || !early[1] || early[2] {
		t.Errorf("early after a wait, a kernel and a copy: got %v", early)
	}
}

// Whatever driver call fails, nothing is leaked, and the streams and the next capture work.
func TestCUDACaptureThatFails(t *testing.T) {
	for _, tc := range []struct {
		call string
		skip int
	}{
		{"cuEventCreate", 0}, {"cuEventCreate", 1}, {"cuStreamBeginCapture", 0}, {"cuEventRecord", 0}, {"cuStreamWaitEvent", 0},
		{"cuMemcpyHtoDAsync", 0}, {"cuMemcpyDtoDAsync", 0}, {"cuEventRecord", 1}, {"cuStreamWaitEvent", 1}, {"cuLaunchKernelEx", 1},
		{"cuMemcpyDtoHAsync", 0}, {"cuEventRecord", 2}, {"cuStreamWaitEvent", 2}, {"cuEventRecord", 3}, {"cuStreamWaitEvent", 3},
		{"cuGraphInstantiateWithFlags", 0}, {"cuGraphDestroy", 0}, {"cuGraphUpload", 0},
	} {
		t.Run(tc.call, func(t *testing.T) {
			w := newWeb(t)
			live := w.fake.Live()
			w.fake.Fail(tc.call, int(cuda.CodeOutOfMemory), tc.skip, 1)
			g, err := w.capture(w.weave)
			if g != nil || !errors.Is(err, cuda.CodeOutOfMemory) || !strings.Contains(err.Error(), tc.call) {
				t.Errorf("got graph %v, error %v", g, err)
			}
			now := w.fake.Live()
			if tc.call == "cuGraphDestroy" {
				now.Graphs-- // the driver kept it
			}
			if now != live {
				t.Errorf("objects: got %+v, want %+v", now, live)
			}
			w.works()
			g = test.Must(w.capture(w.weave))(t)
			test.Check(t, g.Launch(), g.Close())
		})
	}
}

// A driver that ends a capture with an error has released the streams.
func TestCUDACaptureThatIsInvalid(t *testing.T) {
	w := newWeb(t)
	live := w.fake.Live()
	foreign := test.Must(w.devices[1].NewStream(Normal))(t)
	_, err := Capture(w.one, []*Stream{w.two}, func() error {
		// An undeclared stream joins the capture, and remains captured.
		if err := w.one.Record(w.here); err != nil {
			return err
		}
		return errors.Join(foreign.Wait(w.here), foreign.Launch(w.kernel))
	})
	test.Is(t, err, cuda.CodeCaptureUnjoined)
	test.Check(t, foreign.Close())
	if now := w.fake.Live(); now != live {
		t.Errorf("objects: got %+v, want %+v", now, live)
	}
	w.works()
}

func TestCUDALaunchOfAGraphThatFails(t *testing.T) {
	w := newWeb(t)
	g := test.Must(w.capture(w.weave))(t)
	w.fake.Fail("cuGraphLaunch", int(cuda.CodeOutOfMemory), 0, 1)
	if err := g.Launch(); !errors.Is(err, cuda.CodeOutOfMemory) || !strings.HasPrefix(err.Error(), "device cuda 0: launch a graph: device 0: cuGraphLaunch") {
		t.Errorf("got %v", err)
	}
	test.Check(t, g.Launch())
	w.fake.Kill(1, int(cuda.CodeIllegalAddress))
	if err := g.Launch(); !cuda.IsSticky(err) {
		t.Errorf("got %v", err)
	}
	if err := w.two.Sync(testLimit); !cuda.IsSticky(err) || w.devices[1].Err() == nil {
		t.Errorf("got %v", err)
	}
	test.Check(t, g.Close())
	w.fake.Kill(1, 0) // so that the rig does not count its objects
}

// Only streams of one platform can be captured together.
func TestCUDACaptureWithAHostDevice(t *testing.T) {
	w := newWeb(t)
	host := test.Must(HostPlatform(1).Open())(t)
	defer CloseAll(host)
	s := test.Must(host[0].NewStream(Normal))(t)
	for _, two := range [][]*Stream{{w.one, s}, {s, w.one}} {
		if g, err := Capture(two[0], two[1:], func() error { return nil }); g != nil || err == nil || !strings.Contains(err.Error(), "all streams must belong to") {
			t.Errorf("graph %v, %v", g, err)
		}
	}
}
