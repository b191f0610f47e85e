//go:build linux && cgo

package solvers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// The captures and launches of the scheme are what a driver takes: the fake runs no
// kernels, but it knows what may be captured, and counts.
func TestGraphOnAFakeDriver(t *testing.T) {
	compiler := testdevices.NoCompiler(t)
	const devices, steps = 4, 50
	library := cudafake.Build(t, cudafake.Devices(devices))
	fake := cudafake.Inspect(t, library)
	for _, path := range testdevices.Some(1, []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct}) {
		t.Run(fmt.Sprintf("path=%s", path), func(t *testing.T) {
			before := len(fake.Launches())
			graphs := steps
			for try := 0; graphs >= steps && try < 10; try++ { // rounds that a loaded machine makes last are too short for large graphs
				calls := fake.Calls("cuGraphLaunch")
				solveOnFake(t, library, compiler, path, domain.Vec{1, 2, 2}, steps)
				graphs = fake.Calls("cuGraphLaunch") - calls
			}
			if graphs < steps/16 || graphs >= steps {
				t.Errorf("%d launches of graphs", graphs)
			}
			if n := len(fake.Launches()) - before; path == p2p.Staged && n < 2*devices*steps {
				t.Errorf("%d launches of kernels", n)
			}
			if live := fake.Live(); live != (cudafake.Live{}) {
				t.Errorf("left behind: %+v", live)
			}
		})
	}
}

func solveOnFake(t *testing.T, library string, compiler *kernels.Compiler, path p2p.Path, parts domain.Vec, steps int64) {
	t.Helper()
	platform := must(streams.CUDAPlatform(library))(t)
	devices := must(platform.Open())(t)
	links := must(p2p.Discover(t.Context(), devices, nil))(t)
	p := problem(t, []int{6, 8, 8}, kernels.Float64, "dnddpp")
	plan := planFor(t, &testdevices.Set{Devices: devices, Links: links}, p, how{path: path, parts: parts})
	s := must(New(t.Context(), p, plan, compiler))(t)
	_, err := s.Run(t.Context(), scheme.Options{Scheme: scheme.Graph, Steps: steps, CheckEvery: 1 << 30, Limit: testLimit})
	succeeds(t, errors.Join(err, s.Close(), streams.CloseAll(devices), platform.Close()))
}
