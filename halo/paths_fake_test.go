//go:build linux && cgo

package halo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

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
