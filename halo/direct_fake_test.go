//go:build linux && cgo

package halo_test

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

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
