package forecast

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
)

var anyStep = Wanted{Scheme: auto, Path: auto, Precision: "float64", Stencil: "7-point", Dims: 3, OverProcesses: func(string) bool { return true }}

// stepRow is a step of a cube.
func stepRow(scheme, path string, points, devices int, us float64) results.Row {
	return results.NewRow().Label("scheme", scheme).Label("path", path).Label("devices", devices).Label("precision", "float64").
		Label("stencil", "7-point").Label("points", points).Label("parts", fmt.Sprint("1 x 1 x ", devices)).Number(results.Step, us)
}

// written writes a record of processes on so many hosts, and returns the file.
func written(t *testing.T, hosts, processes, devices int, rows ...results.Row) string {
	t.Helper()
	r := &results.Record{Kind: results.KindSchemes, Processes: processes, Rows: rows}
	for i := range processes * devices {
		r.Devices = append(r.Devices, results.Device{ID: i % devices, Name: "d", Backend: "host", Process: i / devices, Host: fmt.Sprint("node", i/devices*hosts/processes)})
	}
	file := filepath.Join(t.TempDir(), "r.json")
	test.Check(t, r.Write(file))
	return file
}

// Steps of processes are taken as cut over the hosts that their devices are in, joined by the network that is named.
func TestMeasuredStepsOfProcesses(t *testing.T) {
	us := func(points, devices int) float64 { return float64(points * points * points / devices) }
	one, two, four := domain.Vec{1, 1, 1}, domain.Vec{1, 1, 2}, domain.Vec{1, 1, 4}
	for _, tc := range []struct {
		name                      string
		hosts, processes, devices int
		by                        string
		want                      map[int]Cut // by devices
	}{
		{"two hosts", 2, 2, 1, "assisted by mpi", map[int]Cut{1: {one, one}, 2: {two, one}}},
		{"two processes of one host", 1, 2, 1, "assisted by mpi", map[int]Cut{1: {one, one}, 2: {one, two}}},
		{"two hosts of two processes", 2, 4, 1, "assisted by mpi", map[int]Cut{1: {one, one}, 2: {one, two}, 4: {two, two}}},
		{"two hosts of two devices", 2, 2, 2, "assisted by staged and mpi", map[int]Cut{1: {one, one}, 4: {two, two}}},
		{"two devices of the first", 2, 2, 2, "assisted by staged", map[int]Cut{1: {one, one}, 2: {one, two}}},
		{"one process", 1, 1, 4, "assisted by staged", map[int]Cut{1: {one, one}, 2: {one, two}, 4: {one, four}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rows []results.Row
			for n := 1; n <= min(4, tc.processes*tc.devices); n *= 2 {
				rows = append(rows, stepRow("assisted", "staged", 16, n, us(16, n)), stepRow("assisted", "staged", 32, n, us(32, n)))
			}
			file := written(t, tc.hosts, tc.processes, tc.devices, rows...)
			if tc.hosts > 1 {
				file += "@hdr200"
			}
			all := test.Must(ReadMeasured([]string{file}))(t)
			samples := anyStep.samples(heat(8, 8, 8), append(all, all...))[tc.by] // of two measurements one counts
			if len(samples) != 2*len(tc.want) {
				t.Errorf("%d steps, want %d", len(samples), 2*len(tc.want))
			}
			for _, s := range samples {
				n := int(s.Cut.Hosts.Product() * s.Cut.Devices.Product())
				if s.Cut != tc.want[n] || (s.Network.Name == "hdr200") != (s.Cut.Hosts != one) {
					t.Errorf("%d devices: cut %v over %q, want %v", n, s.Cut, s.Network.Name, tc.want[n])
				}
				if want := time.Duration(us(s.Grid.Size[0], n)) * time.Microsecond; s.Step != want {
					t.Errorf("%v on %d devices: %v, want %v", s.Grid.Size, n, s.Step, want)
				}
			}
		})
	}
}

// The network of measured hosts is named, and that of one host is not.
func TestNetworkOfMeasuredHosts(t *testing.T) {
	two, one := written(t, 2, 2, 1), written(t, 1, 2, 1)
	for name, want := range map[string]string{
		two: "must have a network if and only if", one + "@hdr200": "must have a network if and only if",
		two + "@nowhere": `got "nowhere"`,
	} {
		if all, err := ReadMeasured([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", name, all, err, want)
		}
	}
}

// The scheme, the order and the path of a config choose among the steps; those of a device alone count for each of them.
func TestWantedSteps(t *testing.T) {
	rows := []results.Row{
		stepRow("two-stream", "", 64, 1, 9), stepRow("two-stream", "peer", 64, 2, 5).Label("order", "pairwise"),
		stepRow("two-stream", "peer", 64, 2, 6).Label("order", "left-right"), stepRow("assisted", "peer", 64, 2, 4),
		stepRow("assisted", "staged", 64, 2, 7), stepRow("assisted", "peer", 64, 2, 3).Label("norms", "every-step"),
		stepRow("assisted", "direct", 64, 2, 3).Label("steps_per_exchange", 2), stepRow("assisted", "direct", 64, 2, 3).Label("precision", "float32"),
		stepRow("assisted", "direct", 64, 2, 3).Label("stencil", "27-point"), stepRow("ranks", "direct", 64, 2, 2),
	}
	all := test.Must(ReadMeasured([]string{written(t, 1, 1, 2, rows...)}))(t)
	for config, want := range map[[3]string]string{
		{auto, "", auto}:                 "assisted by peer 1, assisted by staged 1, two-stream left-right by peer 2, two-stream pairwise by peer 2",
		{"two-stream", "pairwise", auto}: "two-stream pairwise by peer 2",
		{"assisted", "", "peer"}:         "assisted by peer 1",
		{auto, "", "staged"}:             "assisted by staged 1",
	} {
		w := anyStep
		w.Scheme, w.Order, w.Path = config[0], config[1], config[2]
		w.OverProcesses = func(scheme string) bool { return scheme != "ranks" }
		var got []string
		for by, steps := range w.samples(heat(8, 8, 8), all) {
			got = append(got, fmt.Sprint(by, " ", len(steps)))
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", config, got, want)
		}
	}
}

// Steps of two processes predict those of more, and the record says how far the model is from them.
func TestForecastFromProcesses(t *testing.T) {
	var rows []results.Row
	for _, points := range []int{16, 32, 64, 96, 128} {
		cube := float64(points*points*points) / 1e3
		rows = append(rows, stepRow("assisted", "", points, 1, 5+cube), stepRow("assisted", "staged", points, 2, 25+cube/2+float64(points*points*8)/1e3)) // 1 GB/s
	}
	network := Network{Bandwidth: 1e9, Adapters: 1, Latency: 5 * time.Microsecond, Message: 15 * time.Microsecond}
	all := test.Must(ReadMeasured([]string{written(t, 2, 2, 1, rows...) + "@hdr200"}))(t)
	all[0].network = network
	r, out := &results.Record{}, new(strings.Builder)
	f := Forecast{Problem: heat(128, 128, 128), Wanted: anyStep, Hosts: Doubled(4), Devices: 1, Networks: []Network{network}}
	if err := f.Predict(out, r, all); err != nil || !strings.Contains(out.String(), "assisted by mpi") {
		t.Fatalf("%v:\n%s", err, out)
	}
	for of, steps := range map[string]string{"fitted": "10", "unseen": "6"} {
		row, _ := r.Find(results.NewRow().Label("error_of", of))
		if worst := row.Median(results.WorstError); row.Text("steps") != steps || worst > 0.15 || !(worst >= row.Median(results.ModelError)) {
			t.Errorf("errors of %s steps: %+v", of, row)
		}
	}
	out.Reset()
	f.Problem, f.Hosts = heat(8, 8, 8), Doubled(1024)
	if err := f.Predict(out, r, all); err != nil || !strings.Contains(out.String(), "more hosts are not possible: ") {
		t.Errorf("more devices than points: %v:\n%s", err, out)
	}
	f.Devices = 2
	test.Says(t, f.Predict(io.Discard, r, all), "no steps on several devices of a host")
}
