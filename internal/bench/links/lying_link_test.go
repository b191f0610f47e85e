//go:build linux && cgo

package links

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// The benchmark itself detects a link that corrupts data only after it was checked.
func TestLinksAreTried(t *testing.T) {
	library := cudafake.Build(t)
	platform := test.Must(streams.CUDAPlatform(library))(t)
	devices := test.Must(platform.Open())(t)
	defer func() { test.Report(t, errors.Join(streams.CloseAll(devices), platform.Close())) }()
	links := test.Must(p2p.Discover(t.Context(), devices, nil))(t)
	cudafake.Inspect(t, library).SetLink(1, 0, cudafake.LinkLying)
	r := &run{fabric: newFabric(links, nil, 1000), devices: devices, sizes: []int64{1000}, record: &results.Record{}}
	to := &bench.Recorder{Record: r.record}
	err := to.Measure(t.Context(), []bench.Task{r.task(oneWayMode, between(p2p.Peer, devices[1], devices[0]))})
	rows := to.Record.Rows
	if err != nil || len(rows) != 1 || len(rows[0].Values) != 0 ||
		!strings.Contains(rows[0].Note, "path peer from 1 to 0: the link from device cuda 1 to cuda 0 corrupts data: of 1000 bytes sent, 1 arrived wrong, the first at 500") {
		t.Errorf("%+v, %v", rows, err)
	}
}
