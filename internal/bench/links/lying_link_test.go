//go:build linux && cgo

package links

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// A link that lies only after it was looked at is found by the benchmark itself.
func TestLinksAreTried(t *testing.T) {
	library := cudafake.Build(t)
	platform, err := streams.CUDAPlatform(library)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := platform.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(streams.CloseAll(devices), platform.Close()); err != nil {
			t.Error(err)
		}
	}()
	links, err := p2p.Discover(t.Context(), devices, nil)
	if err != nil {
		t.Fatal(err)
	}
	cudafake.Inspect(t, library).SetLink(1, 0, cudafake.LinkLying)
	r := &run{fabric: newFabric(links, nil, 1000), devices: devices, sizes: []int64{1000}, record: &results.Record{}}
	rows, err := r.task(oneWayMode, between(p2p.Peer, devices[1], devices[0])).Measure(t.Context())
	if err != nil || len(rows) != 1 || len(rows[0].Values) != 0 ||
		!strings.Contains(rows[0].Note, "path peer from 1 to 0: the link from device cuda 1 to cuda 0 corrupts data: of 1000 bytes sent, 1 arrived wrong, the first at 500") {
		t.Errorf("%+v, %v", rows, err)
	}
}
