package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/forecast"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// recordOfProcesses writes steps of cubes, by the devices of so many processes on two hosts, or on one, and returns the file.
func recordOfProcesses(t *testing.T, hosts, processes, devices int, step func(points, devices int) float64) string {
	t.Helper()
	r := &results.Record{Kind: results.KindSchemes, Processes: processes}
	for i := range processes * devices {
		r.Devices = append(r.Devices, results.Device{ID: i % devices, Name: "d", Backend: "host", Process: i / devices, Host: fmt.Sprint("node", i/devices*hosts/processes)})
	}
	parts := map[int]string{1: "1 x 1 x 1", 2: "1 x 1 x 2", 4: "1 x 1 x 4"}
	for _, points := range []int{16, 32, 64, 96, 128} {
		for _, n := range []int{1, 2, 4} {
			if n > processes*devices {
				continue
			}
			row := results.NewRow().Label("scheme", "assisted")
			if n > 1 {
				row = row.Label("path", "staged")
			}
			r.Add(row.Label("devices", n).Label("precision", "float64").Label("stencil", "7-point").Label("points", points).Label("parts", parts[n]).
				Number(results.Step, step(points, n)))
		}
	}
	file := filepath.Join(t.TempDir(), "r.json")
	if err := r.Write(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Steps of processes are taken as cut over the hosts that their devices are in, joined by the network that is named.
func TestMeasuredStepsOfProcesses(t *testing.T) {
	testdevices.Once(t)
	wanted := wantedOf(t)
	us := func(points, devices int) float64 { return float64(points * points * points / devices) }
	one, line := domain.Vec{1, 1, 1}, domain.Vec{1, 1, 2}
	for _, tc := range []struct {
		name                      string
		hosts, processes, devices int
		by                        string
		want                      map[int]forecast.Cut // by devices
	}{
		{"two hosts", 2, 2, 1, "assisted by mpi", map[int]forecast.Cut{1: {Hosts: one, Devices: one}, 2: {Hosts: line, Devices: one}}},
		{"two processes of one host", 1, 2, 1, "assisted by mpi", map[int]forecast.Cut{1: {Hosts: one, Devices: one}, 2: {Hosts: one, Devices: line}}},
		{"two hosts of two processes", 2, 4, 1, "assisted by mpi", map[int]forecast.Cut{1: {Hosts: one, Devices: one}, 2: {Hosts: one, Devices: line}, 4: {Hosts: line, Devices: line}}},
		{"two hosts of two devices", 2, 2, 2, "assisted by staged and mpi", map[int]forecast.Cut{1: {Hosts: one, Devices: one}, 4: {Hosts: line, Devices: line}}},
		{"two devices of the first", 2, 2, 2, "assisted by staged", map[int]forecast.Cut{1: {Hosts: one, Devices: one}, 2: {Hosts: one, Devices: line}}},
		{"one process", 1, 1, 4, "assisted by staged", map[int]forecast.Cut{1: {Hosts: one, Devices: one}, 2: {Hosts: one, Devices: line}, 4: {Hosts: one, Devices: domain.Vec{1, 1, 4}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := recordOfProcesses(t, tc.hosts, tc.processes, tc.devices, us)
			if tc.hosts > 1 {
				file += "@hdr200"
			}
			all, err := forecast.ReadMeasured([]string{file})
			if err != nil {
				t.Fatal(err)
			}
			p := forecast.Problem{Width: domain.UniformRadius(3, 1), Element: 8}
			samples := wanted.Samples(p, append(all, all...))[tc.by] // of two measurements one counts
			if len(samples) != 5*len(tc.want) {
				t.Errorf("%d steps, want %d", len(samples), 5*len(tc.want))
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

// The network of measured hosts is asked for, and hosts with several devices are not predicted from hosts with one.
func TestPlanHostsFromProcesses(t *testing.T) {
	testdevices.Once(t)
	us := func(points, devices int) float64 {
		sweep := 5 + float64(points*points*points)/float64(devices)/1e3
		if devices > 1 {
			sweep += 20 + float64(points*points*8)/1e3 // 1 GB/s
		}
		return sweep
	}
	folder := t.TempDir()
	network := filepath.Join(folder, "n.yaml")
	if err := os.WriteFile(network, []byte("latency_us: 5\nbandwidth_gb_s: 1\nmessage_us: 15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two, one := recordOfProcesses(t, 2, 2, 1, us), recordOfProcesses(t, 1, 2, 1, us)
	for _, tc := range []struct{ args, want string }{
		{"--devices-per-host 1 --measured " + two, "name the network of a record of several hosts"},
		{"--devices-per-host 1 --measured " + one + "@hdr200", "name the network of a record of several hosts"},
		{"--devices-per-host 1 --measured " + two + "@nowhere", `no network "nowhere"`},
		{"--devices-per-host 2 --measured " + two + "@" + network, "no steps of several devices of a host were measured"},
	} {
		code, _, errs := cli(append([]string{"plan", heatSample, "--hosts", "4", "--network", network}, strings.Fields(tc.args)...)...)
		if code == 0 || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit %d, %s, want %s", tc.args, code, errs, tc.want)
		}
	}
	record := filepath.Join(folder, "r.json")
	code, out, errs := cli("plan", heatSample, "--hosts", "4", "--network", network, "--devices-per-host", "1", "--measured", two+"@"+network, "--record", record)
	if code != 0 || !strings.Contains(out, "assisted by mpi") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	r, err := results.Read(record)
	if err != nil {
		t.Fatal(err)
	}
	errors := map[string]results.Row{}
	for _, row := range r.Rows {
		if of := row.Text("error_of"); of != "" {
			errors[of] = row
		}
	}
	for of, steps := range map[string]string{"fitted": "10", "unseen": "6"} {
		row := errors[of]
		if worst := row.Median(results.WorstError); row.Text("steps") != steps || worst > 0.15 || worst < row.Median(results.ModelError) {
			t.Errorf("errors of %s steps: %+v", of, row)
		}
	}
}
