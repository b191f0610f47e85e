package main

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
)

// Commands that several processes make together are printed once, with what all of them know.
func TestLaunchedCommands(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	config := write(t, "c.yaml", small)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for name, tc := range map[string]struct {
			args []string
			says []string // each once
		}{
			"devices": {[]string{"devices"}, []string{"2 processes on one host, by ", "rank 0 on host ", "rank 1 on host "}},
			"plan": {[]string{"plan", config}, []string{
				"4 CPU devices of 2 processes on one host", "between processes of one host: ", "memory of a run in bytes", " itself ",
				"messages between processes of one host count as those between rank 0 on host ", "exchange of a step",
			}},
			"plan as a graph": {[]string{"plan", config, "--dot"}, []string{"digraph halox", `"cluster host 1 of rank 1"`}},
			"plan of parts":   {[]string{"plan", config, "--set", "decomposition=[1, 1, 2]", "--set", "devices.count=1"}, []string{"decomposition 1 x 1 x 2 on 2 CPU devices of 2 processes"}},
			"verify":          {[]string{"verify", config}, []string{"\nall ", "checks hold", "scheme assisted serial by staged and mpi: 20 steps on 4 CPU devices of 2 processes", "ok    ranks of 4 devices of 2 processes on one host: one rank receives simultaneous puts of all ranks"}},
		} {
			t.Run(name, func(t *testing.T) {
				if strings.HasPrefix(name, "plan ") {
					testdevices.Once(t)
				}
				r := launchHalox(t, in, 2, []string{"CUDA_VISIBLE_DEVICES="}, tc.args...) // which one process might have to itself
				r.Succeeds(t)
				for _, words := range tc.says {
					if n := strings.Count(r.Out, words); n != 1 {
						t.Errorf("%q is said %d times:\n%s", words, n, r.Out)
					}
				}
				if name == "plan" {
					checkForecast(t, r.Out)
				}
				if strings.Contains(r.Out, "FAIL") {
					t.Error(r.Out)
				}
			})
		}
	})
}

// checkForecast holds what a plan of two processes with two devices each predicts: the devices at the cut between the processes
// have two messages of which one goes through MPI, as long as those that were measured, or as long as shorter ones.
func checkForecast(t *testing.T, out string) {
	t.Helper()
	least := regexp.MustCompile(`count as those between .*: ([\d.]+) us for 1 KiB`).FindStringSubmatch(out)
	if least == nil || strings.Contains(out, "count as 0") {
		t.Fatalf("it does not say what messages between processes take, or some count as 0:\n%s", out)
	}
	_, table, _ := strings.Cut(out, "exchange of a step")
	n := 0
	for _, row := range regexp.MustCompile(`(?m)^host [01] of rank [01] +([\d.]+) us +([\d.]+) us +([\d.]+) us$`).FindAllStringSubmatch(table, -1) {
		if longest := numberIn(t, row[3]); longest >= 0.99*numberIn(t, least[1]) {
			n++
			if numberIn(t, row[1]) < longest || numberIn(t, row[2]) < longest {
				t.Errorf("the longest message takes longer than all: %v", row)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d devices have a message that takes as long as one between processes, want those at the cut:\n%s", n, out)
	}
}

func numberIn(t *testing.T, text string) float64 {
	t.Helper()
	f := test.Must(strconv.ParseFloat(text, 64))(t)
	return f
}

// Benches of several processes leave one record, which names the process of each device.
func TestLaunchedBenches(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		type bench struct {
			ranks, devices int
			args           []string
			rows           map[string]int // by a label and its value, of those with numbers
		}
		benches := map[string]bench{
			"links": {3, 3, []string{"links", "--sizes", "8,1001", "--budget", "1ms"}, map[string]int{
				"path=wire": 2 * (3 + 6 + 3), "path=mpi": 2 * (3 + 6 + 3), "link=processes": 48, "mode=one-way": 24, "mode=ping-pong": 12,
			}},
			"pingpong": {2, 2, []string{"pingpong", "--match", "wu/[VT]/n=1024|ddtbench/NAS_LU_x/", "--most", "9000000", "--fragment", "1000001", "--ring", "1", "--budget", "1ms"}, map[string]int{
				"path=ipc": 9, "path=mpi": 9, "link=processes": 18, "ring=1": 9,
			}},
			"exchange of one device each": {2, 2, []string{"exchange", "--points", "8", "--devices", "1"}, map[string]int{"path=mpi": 1}},
			"exchange":                    {2, 4, []string{"exchange", "--points", "8", "--devices", "2"}, map[string]int{"path=staged": 1, "path=peer": 1, "path=direct": 1}},
			"schemes": {2, 4, []string{"schemes", "--points", "16", "--precisions", "float64", "--budget", "20ms", "--paths", "peer", "--device-counts", "1,2,4"}, map[string]int{
				"devices=1": 8, "devices=2": 6, "devices=4": 5,
			}},
			"scaling": {3, 6, []string{"scaling", "--points", "16", "--precisions", "float64", "--budget", "20ms", "--schemes", "assisted", "--device-counts", "1,2,3,4,6"}, map[string]int{
				"mode=strong": 4, "mode=weak": 4, "devices=3": 0, "devices=4": 2,
			}},
			"checkpoint": {2, 4, []string{"checkpoint", "--points", "16", "--precisions", "float64", "--budget", "20ms", "--schemes", "assisted", "--every", "3", "--device-counts", "1,2,4"}, map[string]int{
				"what=steps": 3, "what=write": 3, "what=read": 3, "what=statistics": 3, "devices=4": 4,
			}},
		}
		for _, name := range testdevices.Some(3, slices.Sorted(maps.Keys(benches))) {
			tc := benches[name]
			t.Run(name, func(t *testing.T) {
				if name != "links" && name != "exchange" && name != "pingpong" { // which have messages of processes and of devices
					testdevices.Once(t)
				}
				file := filepath.Join(t.TempDir(), "r.json")
				args := append(append([]string{"bench"}, tc.args...), "--backend", "host", "--record", file)
				r := launchHalox(t, in, tc.ranks, nil, args...)
				r.Succeeds(t)
				got := test.Must(results.Read(file))(t)
				if got.Processes != tc.ranks || len(got.Devices) != tc.devices || got.Devices[tc.devices-1].Process != tc.ranks-1 || got.Devices[0].Host == "" {
					t.Errorf("%d processes with devices %+v", got.Processes, got.Devices)
				}
				for label, want := range tc.rows {
					key, value, _ := strings.Cut(label, "=")
					measured := &results.Record{Rows: slices.DeleteFunc(slices.Clone(got.Rows), func(r results.Row) bool { return len(r.Values) == 0 })}
					if n := count(measured, results.NewRow().Label(key, value)); n != want {
						t.Errorf("%d rows of %s, want %d:\n%s", n, label, want, r.Out)
					}
				}
			})
		}
	})
}

// A bench goes on where it was interrupted, though rank 0 alone has the record.
func TestLaunchedBenchResumes(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testdevices.Once(t)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		file := filepath.Join(t.TempDir(), "r.json")
		args := []string{"bench", "exchange", "--backend", "host", "--points", "4,8", "--devices", "1"}
		launchHalox(t, in, 2, nil, append(args, "--record", file)...).Succeeds(t)
		cut(t, file, 1, func(*results.Record) {})
		launchHalox(t, in, 2, nil, append(args, "--resume", file)...).Succeeds(t)
		got, err := results.Read(file)
		if err != nil || len(got.Rows) != 2 || len(got.Resumed) != 1 || got.Interrupted {
			t.Errorf("%+v: %v", got, err)
		}
	})
}
