//go:build linux && cgo

package halo_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// withFake lets sessions find a fake driver, no NVRTC, and an empty cache.
func withFake(t *testing.T, flags ...string) *cudafake.Fake {
	t.Helper()
	library := cudafake.Build(t, flags...)
	t.Setenv("HALOX_CUDA", library)
	t.Setenv("HALOX_NVRTC", filepath.Join(t.TempDir(), "nowhere"))
	t.Setenv("HALOX_CACHE", filepath.Join(t.TempDir(), "cache"))
	return cudafake.Inspect(t, library)
}

// openFake opens devices of the fake driver. After the test none of its objects may be left.
func openFake(t *testing.T, fake *cudafake.Fake, want halo.Devices) *halo.Session {
	t.Helper()
	session := must(halo.Open(t.Context(), want))(t)
	t.Cleanup(func() {
		test.Report(t, session.Close())
		if live := fake.Live(); live != (cudafake.Live{}) {
			t.Errorf("left behind: %+v", live)
		}
	})
	return session
}

func TestOpenWithGPUs(t *testing.T) {
	fake := withFake(t)
	session := openFake(t, fake, halo.Devices{IDs: []int{1}})
	if session.Backend != streams.CUDA || session.Devices[0].ID != 1 || session.Note != "" || session.CUDAVersion() == "" {
		t.Errorf("%v, devices %v, note %q, CUDA %q", session, session.Devices, session.Note, session.CUDAVersion())
	}
	for option, want := range map[string]halo.Devices{"Devices.IDs": {IDs: []int{0, 2}}, "Devices.Count": {Count: 3}} {
		_, err := halo.Open(t.Context(), want)
		refusesOption(t, option, err, option, "of this machine")
	}
}

// Close ends compilations, however long they take, and prevents new ones: nothing is written to the cache afterwards.
func TestCloseEndsCompilations(t *testing.T) {
	withFake(t)
	t.Setenv("HALOX_NVRTC", testdevices.SlowNVRTC(t, 100*time.Hour, "").Library)
	session := must(halo.Open(t.Context(), halo.Devices{}))(t)
	source := kernels.Source{Name: "empty.cu", Text: `extern "C" __global__ void empty() {}`}
	go session.Compiler.Compile(source, "sm_90")
	for begun, _ := session.Compiler.Compiled(); begun == 0; begun, _ = session.Compiler.Compiled() {
		time.Sleep(time.Millisecond)
	}
	test.Check(t, session.Close())
	if begun, done := session.Compiler.Compiled(); begun != done {
		t.Errorf("%d compilations of %d have ended", done, begun)
	}
	test.Says(t, test.ErrorOf(session.Compiler.Compile(source, "sm_90")), "the compiler is closed")
}

// With a driver but without a GPU, Open returns CPU devices and a note.
func TestOpenWithADriverWithoutGPUs(t *testing.T) {
	withFake(t, cudafake.Devices(0))
	session := must(halo.Open(t.Context(), halo.Devices{}))(t)
	defer session.Close()
	if session.Backend != streams.Host || session.Note != "No GPU found; running on the CPU." || !strings.HasPrefix(session.NoGPU.Error(), "no GPU: no usable CUDA driver: the library exists, but cuInit: ") {
		t.Errorf("%v, note %q", session, session.Note)
	}
	test.Is(t, test.ErrorOf(halo.Open(t.Context(), halo.Devices{Backend: streams.CUDA})), streams.ErrNoDriver)
}

// islandModel saves a link model with fast messages between devices whose ids are both even or both odd, and
// slow messages between others.
func islandModel(t *testing.T, session *halo.Session) {
	t.Helper()
	model := p2p.NewLinkModel(session.Devices, session.DriverVersion())
	for _, from := range session.Devices {
		for _, to := range session.Devices {
			took := flat(100 * time.Microsecond)
			if from.ID%2 == to.ID%2 {
				took = flat(10 * time.Microsecond)
			}
			for _, path := range paths {
				model.Set(from, to, path, false, took)
				model.Set(from, to, path, true, took)
			}
		}
	}
	done(t, nil, model.Save(""))
}

// MapDevices assigns subdomains to GPUs if no ids are given.
func TestCutMapsDevices(t *testing.T) {
	chain := halo.Cutting{Size: []int{8, 64}, Fields: []halo.Spec{star(2)}}
	for name, c := range map[string]struct {
		want  halo.Devices
		order []int
	}{
		"all":   {halo.Devices{}, []int{0, 2, 1, 3}},
		"four":  {halo.Devices{Count: 4}, []int{0, 2, 1, 3}},
		"named": {halo.Devices{IDs: []int{0, 1, 2, 3}}, []int{0, 1, 2, 3}},
		"two":   {halo.Devices{Count: 2}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			session := openFake(t, withFake(t, cudafake.Devices(4)), c.want)
			islandModel(t, session)
			place := must(session.Cut(t.Context(), chain))(t)
			var order []int
			for _, d := range place.Devices {
				order = append(order, d.ID)
			}
			mapped := !slices.IsSorted(c.order)
			if !slices.Equal(order, c.order) || (place.Mapping != nil) != mapped {
				t.Errorf("order %v, mapping %v", order, place.Mapping)
			}
		})
	}
}

// Links are measured only if a path or the order of devices depends on it.
func TestCutMeasuresWhereItMust(t *testing.T) {
	for name, c := range map[string]struct {
		gpus     int
		path     p2p.Path
		measured bool
	}{
		"a path to choose":        {2, "", true},
		"a given path":            {2, p2p.Peer, false},
		"an order to choose":      {3, p2p.Peer, true},
		"one device, no messages": {1, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			session := openFake(t, withFake(t, cudafake.Devices(4)), halo.Devices{Count: c.gpus})
			islandModel(t, session)
			cutting := halo.Cutting{Size: []int{8, 64}, Fields: []halo.Spec{star(2)}, Path: c.path}
			draft := must(session.Draft(cutting))(t)
			if session.Links.Model != nil || !slices.Equal(draft.Devices, session.Devices) {
				t.Errorf("a draft on %v has the links measured: %v", draft.Devices, session.Links.Model)
			}
			if place := must(session.Cut(t.Context(), cutting))(t); !slices.Equal(place.Subdomains, draft.Subdomains) {
				t.Errorf("subdomains %v, drafted %v", place.Subdomains, draft.Subdomains)
			}
			if (session.Links.Model != nil) != c.measured {
				t.Errorf("measured: %v", session.Links.Model != nil)
			}
		})
	}
}

// A path that a link does not support is an error of the plan, as if the plan requested it.
func TestUnsupportedPathOfCutting(t *testing.T) {
	fake := withFake(t)
	fake.SetLink(0, 1, cudafake.LinkClosed)
	session := openFake(t, fake, halo.Devices{Count: 2})
	place := must(session.Cut(t.Context(), halo.Cutting{Size: []int{8, 64}, Fields: []halo.Spec{star(2)}, Path: p2p.Peer}))(t)
	refuses(t, "peer over a closed link", errorOf(halo.NewPlan(place, session.Links, p2p.Auto, star(2))), "no peer path from device cuda 0 to cuda 1")
	refuses(t, "an exchange over it", errorOf(session.NewExchanger(t.Context(), must(halo.NewField(place, star(2)))(t))), "no peer path from device cuda 0 to cuda 1")
}

// Open stops when the context ends, and leaves nothing open.
func TestOpenEndsWithTheContext(t *testing.T) {
	fake := withFake(t, cudafake.Devices(8))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for fake.Calls("cuCtxEnablePeerAccess") == 0 {
			time.Sleep(10 * time.Microsecond)
		}
		cancel()
	}()
	test.Is(t, test.ErrorOf(halo.Open(ctx, halo.Devices{})), context.Canceled)
	if live := fake.Live(); live != (cudafake.Live{}) {
		t.Errorf("left behind: %+v", live)
	}
}

// fakeGPUs opens two devices that execute nothing.
func fakeGPUs(t *testing.T) *testdevices.Set {
	platform := must(streams.CUDAPlatform(cudafake.Build(t, cudafake.Devices(2))))(t)
	t.Cleanup(func() { platform.Close() })
	devices := must(platform.Open())(t)
	t.Cleanup(func() { streams.CloseAll(devices) })
	links := must(p2p.Discover(t.Context(), devices, nil))(t)
	return &testdevices.Set{Devices: devices, Links: links, Compiler: testdevices.NoCompiler(t)}
}

// Without messages no kernel is queued.
func TestNoMessagesNoKernel(t *testing.T) {
	set := fakeGPUs(t)
	p := place(t, set, []int{8, 6, 8}, [3]bool{}, domain.Vec{1, 1, 1})
	f := openField(t, p, star(3))
	x := open(halo.NewExchanger(must(halo.NewPlan(p, set.Links, p2p.Direct, star(3)))(t), set.Compiler, f))(t)
	if x.IsDirect() {
		t.Error("the exchange is one kernel per GPU")
	}
	at := openStreams(t, p)
	done(t, at, x.Exchange(at), x.Start(at), x.Wait(at))
}

// An exchange that is one kernel per GPU is queued rank by rank, and rejects unsuitable ranks and streams
// like Start.
func TestDirectExchangeIsChecked(t *testing.T) {
	set := fakeGPUs(t)
	p := place(t, set, []int{8, 6, 8}, [3]bool{true, true, true}, domain.Vec{1, 1, 2})
	s := star(3)
	s.Connectivity = halo.Corners
	f := openField(t, p, s)
	plan := must(halo.NewPlan(p, set.Links, p2p.Direct, s))(t)
	if len(plan.Messages) != 4 {
		t.Errorf("%d messages: each GPU has one for itself and one for the other GPU", len(plan.Messages))
	}
	x := open(halo.NewExchanger(plan, set.Compiler, f))(t)
	if !x.IsDirect() {
		t.Fatal("the exchange is not one kernel per GPU")
	}
	at := openStreams(t, p)
	done(t, at, x.ExchangeRank(0, at[0]), x.ExchangeRank(1, at[1]), x.Exchange(at), x.Start(at), x.Wait(at))
	done(t, at, x.BeginRank(0, at[0]), x.BeginRank(1, at[1]), x.EndRank(1, at[1]), x.EndRank(0, at[0]))
	refuses(t, "half of a rank before the first", x.BeginRank(-1, at[0]), "less than 2, got -1")
	refuses(t, "half on a stream of another device", x.EndRank(0, at[1]), "stream for subdomain 0 is on device")
	refuses(t, "a rank before the first", x.ExchangeRank(-1, at[0]), "less than 2, got -1")
	refuses(t, "a rank after the last", x.ExchangeRank(2, at[0]), "less than 2, got 2")
	refuses(t, "no stream", x.ExchangeRank(0, nil), "stream for subdomain 0 is nil")
	refuses(t, "a stream of another device", x.ExchangeRank(0, at[1]), "stream for subdomain 0 is on device")
	done(t, at, x.Close())
	refuses(t, "a closed exchanger", x.ExchangeRank(0, at[0]), "is closed")
}

// flat is a curve in which messages of all sizes take the same time.
func flat(t time.Duration) p2p.Curve { return p2p.NewCurve(p2p.Sample{Bytes: 1, Time: t}) }

// Path auto compares whole exchanges, not only messages: 2 x 2 subdomains in a ring send two messages each,
// one to either neighbor.
func TestAutoComparesWholeExchanges(t *testing.T) {
	const us = time.Microsecond
	for name, c := range map[string]struct {
		direct, peer time.Duration // of a message; 0: not measured
		closed       bool          // the link between devices 0 and 1
		path, why    string
	}{
		"nothing measured":               {0, 0, false, "direct", "one kernel per GPU does the whole exchange"},
		"one kernel for two copies":      {15 * us, 10 * us, false, "direct", "the whole exchange: 15.0 us; message by message 20.0 us"},
		"copies that are far faster":     {50 * us, 10 * us, false, "peer", "peer: 10.0 us"},
		"direct is the fastest for each": {5 * us, 10 * us, false, "direct", "direct: 5.0 us"},
		"an unusable link":               {30 * us, 10 * us, true, "mixed", "10.0 us"},
	} {
		t.Run(name, func(t *testing.T) {
			library := cudafake.Build(t, cudafake.Devices(4))
			if c.closed {
				cudafake.Inspect(t, library).SetLink(0, 1, cudafake.LinkClosed)
			}
			platform := must(streams.CUDAPlatform(library))(t)
			t.Cleanup(func() { platform.Close() })
			devices := must(platform.Open(0, 1, 2, 3))(t)
			t.Cleanup(func() { streams.CloseAll(devices) })
			links := must(p2p.Discover(t.Context(), devices, nil))(t)
			if c.peer > 0 {
				links.Model = p2p.NewLinkModel(devices, "")
				for _, from := range devices {
					for _, to := range devices {
						links.Model.Set(from, to, p2p.Direct, true, flat(c.direct))
						links.Model.Set(from, to, p2p.Peer, true, flat(c.peer))
					}
				}
			}
			plan := squarePlan(t, devices, links)
			m := plan.Messages[len(plan.Messages)-1]
			if plan.Path() != c.path || !strings.Contains(m.Why, c.why) {
				t.Errorf("path %s, %q; want %s, %q", plan.Path(), m.Why, c.path, c.why)
			}
		})
	}
}

// squarePlan plans the exchange of a periodic grid with 2 x 2 subdomains.
func squarePlan(t *testing.T, devices []*streams.Device, links *p2p.Links) *halo.Plan {
	t.Helper()
	grid := must(domain.NewGrid([]int{8, 8, 8}, []bool{true, true, true}))(t)
	cut := must(domain.Decompose(grid, domain.Vec{1, 2, 2}))(t)
	p := must(halo.Place(cut, devices))(t)
	plan := must(halo.NewPlan(p, links, p2p.Auto, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}))(t)
	return plan
}

// A snapshot that does not fit is an error of its kind, and nothing stays allocated.
func TestSnapshotWithoutMemory(t *testing.T) {
	fake := withFake(t, cudafake.Memory(48<<20))
	session := openFake(t, fake, halo.Devices{Count: 2})
	p := must(session.Cut(t.Context(), halo.Cutting{Size: []int{256, 256, 64}, Fields: []halo.Spec{star(3)}, Path: p2p.Peer}))(t)
	small, large := openField(t, p, halo.Spec{Name: "a", Element: domain.Int8}), openField(t, p, star(3))
	before := fake.Live()
	_, err := halo.NewSnapshot(t.Context(), small, large, large)
	test.Is(t, err, streams.ErrOutOfMemory)
	if after := fake.Live(); after != before {
		t.Errorf("%+v before, %+v after", before, after)
	}
	open(halo.NewSnapshot(t.Context(), small, large))(t)
}

// Devices that are left out are not replaced, also if the driver lists fewer of them.
func TestOpenWithout(t *testing.T) {
	for _, tc := range []struct {
		want halo.Devices
		ids  []int // nil: an error
	}{
		{halo.Devices{Without: []string{"cuda 1"}}, []int{0, 2, 3}},
		{halo.Devices{Without: []string{"cuda 1"}, Count: 3}, []int{0, 2}},
		{halo.Devices{Without: []string{"0000:3b:00.0"}, IDs: []int{2, 0}}, []int{2}},
		{halo.Devices{Without: []string{"cuda 4"}, Count: 5}, []int{0, 1, 2, 3}},
		{halo.Devices{Without: []string{"cuda 4"}, IDs: []int{4, 3}}, []int{3}},
		{halo.Devices{Without: []string{"cuda 3"}, IDs: []int{3}}, nil},
		{halo.Devices{Without: []string{"host 0"}, Backend: streams.Host, Count: 2}, []int{1}},
	} {
		withFake(t, cudafake.Devices(4))
		s, err := halo.Open(t.Context(), tc.want)
		if err != nil {
			if test.Says(t, err, "must leave a device to open"); tc.ids != nil {
				t.Errorf("%+v: %v", tc.want, err)
			}
			continue
		}
		var ids []int
		for _, d := range s.Devices {
			ids = append(ids, d.ID)
		}
		if test.Check(t, s.Close()); !slices.Equal(ids, tc.ids) {
			t.Errorf("%+v: devices %v, not %v", tc.want, ids, tc.ids)
		}
	}
}
