//go:build linux && cgo

package halo_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
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
