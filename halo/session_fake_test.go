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

// openFake opens devices of the fake driver. After the test nothing may be left of them.
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

func TestOpenBesideGPUs(t *testing.T) {
	fake := withFake(t)
	session := openFake(t, fake, halo.Devices{IDs: []int{1}})
	if session.Backend != streams.CUDA || session.Devices[0].ID != 1 || session.Note != "" || session.CUDAVersion() == "" {
		t.Errorf("%v, devices %v, note %q, CUDA %q", session, session.Devices, session.Note, session.CUDAVersion())
	}
	for option, want := range map[string]halo.Devices{"Devices.IDs": {IDs: []int{0, 2}}, "Devices.Count": {Count: 3}} {
		_, err := halo.Open(t.Context(), want)
		refusesOption(t, option, err, option, "this machine has 2")
	}
}

// A driver that is there and shows no GPU leaves host devices, and a note.
func TestOpenWithADriverWithoutGPUs(t *testing.T) {
	withFake(t, cudafake.Devices(0))
	session := must(halo.Open(t.Context(), halo.Devices{}))(t)
	defer session.Close()
	if session.Backend != streams.Host || session.Note != "No GPU found; running on the CPU." || !strings.HasPrefix(session.NoGPU.Error(), "no GPU: no usable CUDA driver: the library is there, but cuInit: ") {
		t.Errorf("%v, note %q", session, session.Note)
	}
	test.Is(t, test.ErrorOf(halo.Open(t.Context(), halo.Devices{Backend: streams.CUDA})), streams.ErrNoDriver)
}

// islandModel keeps in the cache that messages are fast between devices whose ids are both
// even or both odd, and slow between others.
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

// Subdomains go to the GPUs that suit their messages, where nobody named the ids.
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

// Links are measured where a path or the order of devices depends on it, and not before.
func TestCutMeasuresWhereItMust(t *testing.T) {
	for name, c := range map[string]struct {
		gpus     int
		path     p2p.Path
		measured bool
	}{
		"a path to be chosen":      {2, "", true},
		"a path that is given":     {2, p2p.Peer, false},
		"an order to be chosen":    {3, p2p.Peer, true},
		"a device and no messages": {1, "", false},
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

// A path that a link cannot give is an error of the plan, as where the plan asks for it.
func TestPathOfACuttingThatALinkHasNot(t *testing.T) {
	fake := withFake(t)
	fake.SetLink(0, 1, cudafake.LinkClosed)
	session := openFake(t, fake, halo.Devices{Count: 2})
	place := must(session.Cut(t.Context(), halo.Cutting{Size: []int{8, 64}, Fields: []halo.Spec{star(2)}, Path: p2p.Peer}))(t)
	refuses(t, "peer over a closed link", errorOf(halo.NewPlan(place, session.Links, p2p.Auto, star(2))), "no peer path from device cuda 0 to cuda 1")
	refuses(t, "an exchange over it", errorOf(session.NewExchanger(t.Context(), must(halo.NewField(place, star(2)))(t))), "no peer path from device cuda 0 to cuda 1")
}

// A search for links ends with the context, and leaves nothing.
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

// fakeGPUs opens two devices that run nothing.
func fakeGPUs(t *testing.T) *testdevices.Set {
	platform := must(streams.CUDAPlatform(cudafake.Build(t, cudafake.Devices(2))))(t)
	t.Cleanup(func() { platform.Close() })
	devices := must(platform.Open())(t)
	t.Cleanup(func() { streams.CloseAll(devices) })
	links := must(p2p.Discover(t.Context(), devices, nil))(t)
	return &testdevices.Set{Devices: devices, Links: links, Compiler: testdevices.NoCompiler(t)}
}

// Nothing is queued where there is nothing to exchange.
func TestNoMessagesAreNoKernel(t *testing.T) {
	set := fakeGPUs(t)
	p := place(t, set, []int{8, 6, 8}, [3]bool{}, domain.Vec{1, 1, 1})
	f := openField(t, p, star(3))
	x := open(halo.NewExchanger(must(halo.NewPlan(p, set.Links, p2p.Direct, star(3)))(t), set.Compiler, f))(t)
	if x.IsDirect() {
		t.Error("the exchange is one kernel a GPU")
	}
	at := openStreams(t, p)
	done(t, at, x.Exchange(at), x.Start(at), x.Wait(at))
}

// An exchange that is one kernel a GPU is queued rank by rank, and refuses ranks and streams that
// do not suit as it does when one thread drives all.
func TestDirectExchangeIsChecked(t *testing.T) {
	set := fakeGPUs(t)
	p := place(t, set, []int{8, 6, 8}, [3]bool{true, true, true}, domain.Vec{1, 1, 2})
	s := star(3)
	s.Connectivity = halo.Corners
	f := openField(t, p, s)
	plan := must(halo.NewPlan(p, set.Links, p2p.Direct, s))(t)
	if len(plan.Messages) != 4 {
		t.Errorf("%d messages: each GPU has one for itself and one for the other", len(plan.Messages))
	}
	x := open(halo.NewExchanger(plan, set.Compiler, f))(t)
	if !x.IsDirect() {
		t.Fatal("the exchange is no kernel a GPU")
	}
	at := openStreams(t, p)
	done(t, at, x.ExchangeRank(0, at[0]), x.ExchangeRank(1, at[1]), x.Exchange(at), x.Start(at), x.Wait(at))
	done(t, at, x.BeginRank(0, at[0]), x.BeginRank(1, at[1]), x.EndRank(1, at[1]), x.EndRank(0, at[0]))
	refuses(t, "half of a rank before the first", x.BeginRank(-1, at[0]), "rank -1 of 2")
	refuses(t, "half on a stream of another device", x.EndRank(0, at[1]), "stream for subdomain 0 is one of device")
	refuses(t, "a rank before the first", x.ExchangeRank(-1, at[0]), "rank -1 of 2")
	refuses(t, "a rank after the last", x.ExchangeRank(2, at[0]), "rank 2 of 2")
	refuses(t, "no stream", x.ExchangeRank(0, nil), "no stream for subdomain 0")
	refuses(t, "a stream of another device", x.ExchangeRank(0, at[1]), "stream for subdomain 0 is one of device")
	done(t, at, x.Close())
	refuses(t, "a closed exchanger", x.ExchangeRank(0, at[0]), "is closed")
}

// flat is what messages of all sizes take that take as long as each other.
func flat(t time.Duration) p2p.Curve { return p2p.NewCurve(p2p.Sample{Bytes: 1, Time: t}) }

// Where path auto is asked for, whole exchanges are compared, not only messages:
// 2 x 2 subdomains in a ring send two messages each, one to either neighbour.
func TestAutoComparesWholeExchanges(t *testing.T) {
	const us = time.Microsecond
	for name, c := range map[string]struct {
		direct, peer time.Duration // of a message; 0: not measured
		closed       bool          // the link between devices 0 and 1
		path, why    string
	}{
		"nothing measured":                  {0, 0, false, "direct", "one kernel per GPU does the whole exchange"},
		"one kernel for two copies":         {15 * us, 10 * us, false, "direct", "the whole exchange: 15.0 us; message by message 20.0 us"},
		"copies that are far faster":        {50 * us, 10 * us, false, "peer", "peer: 10.0 us"},
		"direct is the fastest for each":    {5 * us, 10 * us, false, "direct", "direct: 5.0 us"},
		"a link through which nothing goes": {30 * us, 10 * us, true, "mixed", "10.0 us"},
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

// squarePlan plans the exchange of a periodic grid cut into 2 x 2 subdomains.
func squarePlan(t *testing.T, devices []*streams.Device, links *p2p.Links) *halo.Plan {
	t.Helper()
	grid := must(domain.NewGrid([]int{8, 8, 8}, [3]bool{true, true, true}))(t)
	cut := must(domain.Decompose(grid, domain.Vec{1, 2, 2}))(t)
	p := must(halo.Place(cut, devices))(t)
	plan := must(halo.NewPlan(p, links, p2p.Auto, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}))(t)
	return plan
}
