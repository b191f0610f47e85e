package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

var update = flag.Bool("update", false, "write the golden files of this package")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		test.Check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: the golden files are not here")
	}
	test.Check(t, err)
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// measured writes a link model of CPU devices to the cache: messages up to
// 1 KiB take 4 us by peer, 9 us packed, 6 us by direct and 12 us staged.
func measured(t *testing.T) {
	t.Helper()
	devices := test.Must(streams.HostPlatform(2).Open())(t)
	defer streams.CloseAll(devices)
	r := p2p.NewLinkModel(devices, "")
	set := func(path p2p.Path, packed bool, us time.Duration) {
		c := p2p.NewCurve(p2p.Sample{Bytes: 1024, Time: us * time.Microsecond}, p2p.Sample{Bytes: 2048, Time: 2 * us * time.Microsecond})
		r.Set(devices[0], devices[1], path, packed, c)
	}
	set(p2p.Peer, false, 4)
	set(p2p.Peer, true, 9)
	set(p2p.Direct, true, 6)
	set(p2p.Staged, false, 12)
	set(p2p.Staged, true, 15)
	folder := filepath.Join(t.TempDir(), "cache")
	test.Check(t, r.Save(folder))
	t.Setenv("HALOX_CACHE", folder)
}

const planned = `
solver: heat
grid: {size: [12, 16, 9]}
boundary: {y: periodic}
stop: {iterations: 40}
devices: {backend: host, count: 4}
decomposition: [1, 2, 2]
exchange: {scheme: assisted}
`

// memoryOfTheMachine is what the tables say of the memory that devices have.
var memoryOfTheMachine = regexp.MustCompile(`(?m)^((?:host \d|the host) .*\d) +[\d.]+ [KMGT]iB +[\d.]+ [KMGT]iB$|^(device +field .* copy) +free +total$`)

// limitOfTheMachine is which number that is.
var limitOfTheMachine = regexp.MustCompile(`(?m)(free memory of the host:) .*$`)

func TestPlan(t *testing.T) {
	measured(t)
	file := write(t, "c.yaml", planned)
	for name, args := range map[string][]string{
		"plan.txt":       nil,
		"plan-alone.txt": {"--set", "decomposition=[1,1,1]", "--set", "devices.count=1"},
		"plan-steps.txt": {"--set", "exchange.steps=3"},
		"plan.dot":       {"--dot"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := cli(append([]string{"plan", file}, args...)...)
			if code != 0 || errs != "" {
				t.Fatalf("exit %d: %s", code, errs)
			}
			out = limitOfTheMachine.ReplaceAllString(memoryOfTheMachine.ReplaceAllString(out, "$1$2  ..."), "$1 ...")
			golden(t, name, strings.ReplaceAll(out, runtime.GOARCH, "ARCH"))
		})
	}
}

// Copies count those of series, each field once, unless a series is small. All fields and statistics are state.
func TestPlanCountsCopies(t *testing.T) {
	measured(t)
	file := write(t, "c.yaml", planned)
	copied := func(series string) (all int64) {
		code, out, errs := cli("plan", file, "--json", "--set", "output.statistics={mean: [u], every: 3}", "--set", "output.series="+series)
		var p struct {
			Memory []struct {
				Copy int64 `json:"copy_bytes"`
			}
		}
		if code != 0 {
			t.Fatalf("%s: exit %d: %s%s", series, code, out, errs)
		}
		test.Check(t, json.Unmarshal([]byte(out), &p))
		for _, m := range p.Memory {
			all += m.Copy
		}
		return all
	}
	state, u := copied("[]"), copied("[{every: 9}]")
	for series, want := range map[string]int64{
		"[{every: 9, slice: {z: 0.5}}]":                       state,
		"[{every: 9}, {every: 3, name: b}]":                   u,
		"[{every: 9}, {every: 3, fields: [mean_u], name: b}]": 2 * state,
		"[{every: 9, fields: [u, mean_u], name: all}]":        2 * state,
	} {
		if got := copied(series); got != want || u <= state {
			t.Errorf("%s: %d bytes, want %d: the state has %d, and with u %d", series, got, want, state, u)
		}
	}
}

// The paths of a plan are those of a run.
func TestPlanForcesPaths(t *testing.T) {
	measured(t)
	file := write(t, "c.yaml", planned)
	for _, path := range []string{"staged", "peer", "direct"} {
		code, out, errs := cli("plan", file, "--set", "exchange.path="+path)
		if code != 0 || strings.Count(out, path+"  requested") != 8 {
			t.Errorf("exit %d: %s%s", code, out, errs)
		}
	}
}

// Without a link model in the cache the links are measured, and the file is kept.
func TestPlanMeasures(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cache")
	t.Setenv("HALOX_CACHE", folder)
	code, out, errs := cli("plan", write(t, "c.yaml", planned))
	if code != 0 || !strings.Contains(out, " us for 768 B; ") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "links-*.json")); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// What plan says of the memory is what a run with all its outputs holds, byte for byte.
func TestPlanSaysWhatARunHolds(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	measured(t)
	dir := t.TempDir()
	file := write(t, "c.yaml", planned)
	for _, name := range testdevices.Again(2, testdevices.Some(4, scheme.All())) {
		t.Run(string(name), func(t *testing.T) {
			config, err := solve.Load(t.Context(), 1, file, []string{
				"exchange.scheme=" + string(name), "stop.iterations=5", "stop.tolerance=1e-300", "stop.check_every=2", "exact=sin(x)",
				"output.field=" + filepath.Join(dir, "u.npy"), "output.picture=" + filepath.Join(dir, "u.png"), "output.record=" + filepath.Join(dir, "r.json"),
			})
			test.Check(t, err)
			w := test.Must(solve.OpenConfig(t.Context(), config, mpi.Alone(), io.Discard, false))(t)
			counted, err := w.Memory(t.Context())
			test.Report(t, solve.Close(w))
			test.Check(t, err)
			s := test.Must(solve.Open(t.Context(), config, solve.Options{Processes: mpi.Alone()}, progress.NewStatus(io.Discard, nil, false)))(t)
			test.Check(t, s.Solve(t.Context(), time.Now(), io.Discard, io.Discard))
			for rank, d := range s.Place.Devices {
				c := counted[rank]
				if got, want := d.Peak(), (streams.Held{Memory: c.Variables + c.Extra, Pinned: c.Pinned}); got != want {
					t.Errorf("%v held %+v; plan says %+v", d, got, c)
				}
			}
			test.Report(t, solve.Close(s.Setup))
		})
	}
}

// A grid that does not fit is refused by all commands, with the numbers and what they are of.
func TestGridsThatDoNotFit(t *testing.T) {
	testdevices.Once(t)
	measured(t)
	file := write(t, "c.yaml", planned)
	for _, args := range [][]string{{"config", "check"}, {"plan"}, {"run"}} {
		code, out, errs := cli(append(args, file, "--set", "grid.size=[20000,20000,20000]")...)
		if code != int(command.Config) || strings.Contains(out, "subdomains") != (args[0] == "plan") { // whose tables show why
			t.Errorf("%v: exit %d: %s", args, code, out)
		}
		for _, says := range []string{"out of memory on the host", ": need 116", " are available: ", ": use more devices"} {
			if !strings.Contains(errs, says) {
				t.Errorf("%v: %q is not in:\n%s", args, says, errs)
			}
		}
	}
}

var heatSample = filepath.Join("..", "..", "configs", "heat3d.yaml")

// measuredSchemes are steps of cubes on one, two and four GPUs.
var measuredSchemes = filepath.Join("..", "..", "results", "h200x4", "performance", "schemes-float64.json")

// plannedHosts runs plan for hosts, and returns what it printed and the rows of its record.
func plannedHosts(t *testing.T, args ...string) (string, []results.Row) {
	t.Helper()
	record := filepath.Join(t.TempDir(), "record.json")
	code, out, errs := cli(append([]string{"plan", heatSample, "--record", record}, args...)...)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r := test.Must(results.Read(record))(t)
	if r.Kind != results.KindForecast || len(r.Devices) == 0 || r.Devices[0].Name != "NVIDIA H200" {
		t.Errorf("a record of kind %q on %v", r.Kind, r.Devices)
	}
	return out, r.Rows
}

// A faster network is at least as efficient, on one host nothing is lost, and the curves end at the number of hosts that was asked for.
func TestPlanHosts(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	picture := filepath.Join(t.TempDir(), "hosts.svg")
	out, rows := plannedHosts(t, "--set", "grid.size=[1024,1024,1024]", "--hosts", "10000", "--networks", "10gbe,ndr400x4", "--measured", measuredSchemes, "--plot", picture)
	if text, err := os.ReadFile(picture); err != nil || !strings.Contains(string(text), "ndr400x4") {
		t.Errorf("the picture: %v", err)
	}
	for _, want := range []string{"assisted by peer", "not used", "10000", "the efficiency falls below 90% at about", "unseen: sizes left out of a fit"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	efficiency, falls := map[[3]string]float64{}, map[string]float64{}
	for _, r := range rows {
		if r.Text("error_of") != "" {
			continue
		}
		if at, ok := r.Get(results.HostsAt90); ok {
			falls[r.Text("mode")+" "+r.Text("network")] = at.Median
			continue
		}
		efficiency[[3]string{r.Text("network"), r.Text("mode"), r.Text("hosts")}] = r.Median(results.Efficiency)
		if s, _, _ := strings.Cut(r.Text("scheme"), " "); !slices.Contains([]string{"baseline", "two-stream", "assisted", "fused"}, s) {
			t.Errorf("scheme %s over hosts", s)
		}
	}
	if len(efficiency) != 4*15 {
		t.Errorf("%d steps, want 15 of each of 4 curves", len(efficiency))
	}
	for mode, at := range map[string]float64{"strong": falls["strong 10gbe"], "weak": falls["weak 10gbe"]} {
		if at < 2 || at > 10000 || falls[mode+" ndr400x4"] > 0 && falls[mode+" ndr400x4"] < at {
			t.Errorf("%s: the efficiency falls below 90%% at %v hosts, over the fast network at %v", mode, at, falls[mode+" ndr400x4"])
		}
	}
	for at, slow := range efficiency {
		fast := efficiency[[3]string{"ndr400x4", at[1], at[2]}]
		if slow > fast+1e-9 || at[2] == "1" && slow != 1 || fast <= 0 || fast > 1.01 {
			t.Errorf("%v: %v, and %v over the fast network", at, slow, fast)
		}
	}
}

// rowsOf returns the line of a table for each number of hosts, one grid on all of them.
func rowsOf(out string, hosts ...string) (all []string) {
	strong := out[strings.Index(out, "one grid on all hosts"):]
	for _, n := range hosts {
		line := regexp.MustCompile(`(?m)^` + n + ` .*$`).FindString(strong)
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

// What the config says of the scheme, of devices and of the cut holds for the hosts that are planned.
func TestPlanHostsAsTheConfigCuts(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testdevices.Once(t)
	out, _ := plannedHosts(t, "--hosts", "2", "--networks", "hdr200", "--measured", measuredSchemes,
		"--set", "exchange={scheme: two-stream, order: pairwise, path: peer}")
	if !strings.Contains(out, "two-stream pairwise by peer") || strings.Contains(out, "assisted") || strings.Contains(out, "staged") || strings.Contains(out, "left-right") {
		t.Errorf("got\n%s", out)
	}
	for _, tc := range testdevices.Some(2, []struct { // each fits models
		name, args string
		want       []string // how the rows of 1, 2 and 4 hosts begin; "" where there is none
	}{
		{"nothing is said", "--hosts 4", []string{"1 4 1 x 1 x 1 65536", "2 8 1 x 1 x 2", "4 16 1 x 2 x 2"}},
		{"two devices per host", "--hosts 4 --set devices.count=2", []string{"1 2 1 x 1 x 1 131072", "2 4", "4 8"}},
		{"two that are named", "--hosts 4 --set devices.ids=[1,3]", []string{"1 2 1 x 1 x 1 131072", "2 4", "4 8"}},
		{"and the flag says so too", "--hosts 4 --set devices.count=2 --devices-per-host 2", []string{"1 2", "2 4", "4 8"}},
		{"a cut of all devices", "--hosts 4 --set decomposition=[2,4,1]", []string{"1 2 1 x 1 x 1", "", "4 8 1 x 4 x 1 32768"}},
		{"a cut within hosts", "--hosts 2 --set decomposition=[2,2,2]", []string{"1 4", "2 8 1 x 1 x 2 32768", ""}},
		{"a cut of one host", "--hosts 1 --set decomposition=[1,1,4]", []string{"1 4 1 x 1 x 1 65536", "", ""}},
	}) {
		t.Run(tc.name, func(t *testing.T) {
			args := append(strings.Fields(tc.args), "--networks", "hdr200", "--measured", measuredSchemes, "--set", "grid.size=[64,64,64]")
			out, _ := plannedHosts(t, args...)
			for i, row := range rowsOf(out, "1", "2", "4") {
				if !strings.HasPrefix(row, tc.want[i]) || (row == "") != (tc.want[i] == "") {
					t.Errorf("row %q, want %q in\n%s", row, tc.want[i], out)
				}
			}
		})
	}
}

// What cannot be planned is rejected; what tells so before models are fitted does before anything is printed.
func TestPlanHostsRefuses(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	testdevices.Once(t)
	network := write(t, "network.yaml", "latency_us: 1\nbandwidth_gb_s: 0\n")
	measured := " --measured " + measuredSchemes
	four := "--hosts 4 --networks hdr200" + measured
	for _, tc := range []struct{ args, want string }{
		{"--record record.json", "--record: needs --hosts"},
		{"--networks hdr200", "--networks: needs --hosts"},
		{"--devices-per-host 4", "--devices-per-host: needs --hosts"},
		{"--hosts 0 --networks hdr200" + measured, "--hosts: must be between 1 and 131072, got 0"},
		{"--hosts 10000000 --networks hdr200" + measured, "131072, got 10000000"},
		{"--hosts 4" + measured, "--networks: must name at least one"},
		{"--hosts 4 --networks hdr200", "--measured: must name records"},
		{"--hosts 4 --networks hdr200,token-ring" + measured, `got "token-ring"`},
		{"--hosts 4 --networks " + network + measured, "bandwidth_gb_s: must be between 1e-06 and 1e+06, got 0"},
		{"--hosts 4 --networks hdr200 --measured nowhere.json", "nowhere.json"},
		{four + "@hdr200", "FILE@NETWORK: it has 1"},
		{four + " --devices-per-host 0", "64, got 0"},
		{four + " --record hosts.yaml", "--record hosts.yaml: the name must end in .json"},
		{four + " --plot hosts.doc", "--plot"},
		{four + " --record " + filepath.Join(network, "r.json"), "--record: "},
		{four + " --set precision=float32", "must have steps of this stencil, precision"},
		{four + " --set exchange.scheme=resident", "must have steps of this stencil, precision"},
		{four + " --set exchange.steps=4", "exchange.steps: 4"},
		{four + " --set devices.count=2 --devices-per-host 4", "--devices-per-host: must be 2 with devices.count of the config, got 4"},
		{four + " --set decomposition=[1,2,4] --devices-per-host 4", "--devices-per-host: must be 2 with decomposition [1 2 4] over 4 hosts of the config, got 4"},
		{four + " --set decomposition=[1,2,3]", "must make the same number of subdomains for each of 4 processes, but makes 6"},
		{four + " --set decomposition=[3,1,4] --set devices.count=2", "must make as many subdomains as there are devices of 4 processes, 8 instead of 12"},
		{"--hosts 3 --networks hdr200 --set decomposition=[3,2,1]" + measured, "parts [3 2 1]: the subdomains of each host of 2 devices must form a box, in the order of their ranks"},
		{"--hosts 1 --networks hdr200 --set devices.count=100" + measured, "devices.count: 100 devices per host; must be between 1 and 64"},
	} {
		code, out, errs := cli(append([]string{"plan", heatSample}, strings.Fields(tc.args)...)...)
		if code == 0 || out != "" || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit %d, %q, %q, want %q", tc.args, code, out, errs, tc.want)
		}
	}
}

// Nothing that is read is written over, nor the record by the plot.
func TestPlanHostsKeepsWhatItReads(t *testing.T) {
	testdevices.Once(t)
	folder := t.TempDir()
	at := func(name, text string) string {
		file := filepath.Join(folder, name)
		test.Check(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	config, network := at("config.json", planned), at("network.json", "latency_us: 1\nbandwidth_gb_s: 1\n")
	drawn, measured := at("config.svg", planned), at("measured.json", "a record")
	linked := filepath.Join(folder, "new.svg")
	if err := os.Symlink("new.json", linked); err != nil {
		t.Skip("SKIPPED: no symbolic links here: ", err)
	}
	for _, tc := range []struct{ config, args, want string }{
		{config, "--record " + config, "--record: " + config + " is the config"},
		{config, "--record " + folder + "/../" + filepath.Base(folder) + "/config.json", "config.json is the config"},
		{drawn, "--plot " + drawn, "--plot: " + drawn + " is the config"},
		{config, "--networks " + network + " --record " + network, "--record: " + network + " is the file of a network"},
		{config, "--measured " + measured + "@" + network + " --record " + network, "--record: " + network + " is the file of a network"},
		{config, "--measured " + folder + "/none.json@hdr200 --record " + folder + "/none.json", "none.json is one of --measured"},
		{config, "--record " + filepath.Join(folder, "new.json") + " --plot " + linked, "new.svg is --record"},
	} {
		args := append([]string{"plan", tc.config, "--hosts", "2", "--networks", "hdr200", "--measured", measured}, strings.Fields(tc.args)...)
		code, out, errs := cli(args...)
		if code == 0 || out != "" || !strings.Contains(errs, tc.want) || !strings.Contains(errs, "name another file") {
			t.Errorf("%s: exit %d, %q, %q, want %q", tc.args, code, out, errs, tc.want)
		}
	}
	for _, file := range []string{config, drawn} {
		if string(content(t, file)) != planned {
			t.Errorf("%s was written over", file)
		}
	}
}

// What measures no network says so before it measures.
func TestNetworkOfOneHostIsRefused(t *testing.T) {
	record := filepath.Join(t.TempDir(), "links.json")
	code, out, errs := cli("bench", "links", "--backend", "host", "--sizes", "8", "--record", record, "--network-file", filepath.Join(t.TempDir(), "n.yaml"))
	if _, err := os.Stat(record); code == 0 || out != "" || !strings.Contains(errs, "--network-file: needs processes on at least two hosts") || err == nil {
		t.Errorf("exit %d, %q, %q, the record: %v", code, out, errs, err)
	}
}
