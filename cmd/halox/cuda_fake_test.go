//go:build linux && cgo

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// withFake lets halox find a fake driver with two GPUs, and no NVRTC.
func withFake(t *testing.T, flags ...string) *cudafake.Fake {
	t.Helper()
	library := cudafake.Build(t, flags...)
	t.Setenv("HALOX_CUDA", library)
	t.Setenv("HALOX_NVRTC", filepath.Join(t.TempDir(), "nowhere"))
	fake := cudafake.Inspect(t, library)
	t.Cleanup(func() {
		if live := fake.Live(); live != (cudafake.Live{}) {
			t.Errorf("left behind: %+v", live)
		}
	})
	return fake
}

// Signals end the process even if a driver call never returns.
func TestSignalsBesideAStuckDriver(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	file := write(t, "c.yaml", "solver: heat\ngrid: {size: [16, 16]}\n")
	for _, tc := range testdevices.Some(2, []struct {
		call string
		args []string
	}{
		{"cuInit", []string{"devices"}},
		{"cuInit", []string{"run", file}},
		{"cuDevicePrimaryCtxRetain", []string{"plan", file}},
		{"cuMemcpyPeerAsync", []string{"verify", file}},
		{"cuMemcpyPeerAsync", []string{"bench", "exchange"}},
	}) {
		t.Run(tc.call+" "+tc.args[0], func(t *testing.T) {
			withFake(t, cudafake.Stuck(tc.call))
			p := start(t, "", "", tc.args...)
			p.listens(t)
			p.stopped(t, syscall.SIGTERM)
		})
	}
}

// Nor does a compiler that takes its time, by itself or while links wait for it to be measured.
func TestSignalsWhileKernelsAreCompiled(t *testing.T) {
	file := write(t, "c.yaml", "solver: heat\ngrid: {size: [16, 16]}\n")
	for _, args := range [][]string{{"run", file}, {"run", file, "--set", "exchange.path=peer"}, {"plan", file}} {
		t.Run(strings.Join(args[2:], " "), func(t *testing.T) {
			withFake(t)
			slow := testdevices.SlowNVRTC(t, 10*time.Second, "")
			t.Setenv("HALOX_NVRTC", slow.Library)
			t.Setenv("HALOX_CACHE", t.TempDir())
			p := start(t, "", "", args...)
			await(t, func() bool {
				names, _ := slow.Compiled(t)
				return len(names) > 0
			})
			p.stopped(t, syscall.SIGTERM)
		})
	}
}

// spaces makes tables comparable without their alignment.
var spaces = regexp.MustCompile(` +`)

func TestDevicesListsGPUs(t *testing.T) {
	const gpus = `device name memory arch PCI bus id cores
cuda 0 Fake GPU 0 6.0 GiB sm_90 0000:3b:00.0 4
cuda 1 Fake GPU 1 6.0 GiB sm_90 0000:3c:00.0 4

links from row to column, and peer access, tested with data:
 cuda 0 cuda 1
`
	for _, tc := range []struct {
		name  string
		link  cudafake.Link // from device 0 to device 1
		links string
	}{
		{"open", cudafake.LinkOpen, "cuda 0 - - peer\ncuda 1 - peer -\n"},
		{"closed", cudafake.LinkClosed, "cuda 0 - - no peer\ncuda 1 - peer -\n" +
			"cuda 0 to cuda 1: the driver does not allow peer access\n"},
		{"lying", cudafake.LinkLying, "cuda 0 - - no peer\ncuda 1 - peer -\n" +
			"cuda 0 to cuda 1: the link from device cuda 0 to cuda 1 corrupts data: of 1048576 bytes sent, 1 arrived wrong, the first at 524288\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := withFake(t)
			fake.SetLink(0, 1, tc.link)
			code, out, notes := cli("devices")
			if code != 0 || notes != "" {
				t.Errorf("exit code %d: %s", code, notes)
			}
			out = spaces.ReplaceAllString(out, " ")
			if got, host, found := strings.Cut(out, "\ndevice name"); got != gpus+tc.links || !found || !strings.Contains(host, "\nhost 0 ") {
				t.Errorf("got:\n%s\nwant:\n%s", out, gpus+tc.links)
			}
		})
	}
}

// A link that is closed or that lies is not timed: it is named, in the record too. The
// others are. The fake runs no kernels, so that nothing waits for a gate.
func TestBenchLinksOfBadLinks(t *testing.T) {
	nvrtc := testdevices.NVRTC(t)
	for _, tc := range []struct {
		name string
		link cudafake.Link // from device 0 to device 1
		code int
		says string
	}{
		{"open", cudafake.LinkOpen, 0, ""},
		{"closed", cudafake.LinkClosed, 0, "not measured: from 0, to 1, path peer, mode one-way: p2p: no peer path from device cuda 0 to cuda 1: the driver does not allow peer access"},
		{"lying", cudafake.LinkLying, int(command.CheckFailed), "the link from device cuda 0 to cuda 1 corrupts data: of 1048576 bytes sent, 1 arrived wrong, the first at 524288"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := withFake(t)
			t.Setenv("HALOX_NVRTC", nvrtc)
			t.Setenv("HALOX_CACHE", t.TempDir())
			fake.SetLink(0, 1, tc.link)
			file := filepath.Join(t.TempDir(), "l.json")
			code, out, notes := cli("bench", "links", "--paths", "peer,staged", "--sizes", "64,4096", "--budget", "1us", "--record", file)
			if code != tc.code || !strings.Contains(notes, tc.says) || tc.code == int(command.CheckFailed) && !strings.Contains(notes, "a link corrupts data") {
				t.Errorf("exit code %d:\n%s%s", code, out, notes)
			}
			r := test.Must(results.Read(file))(t)
			measured := map[string]int{}
			for _, row := range r.Rows {
				if len(row.Values) > 0 {
					measured[row.Text("path")+" "+row.Text("from")+row.Text("to")+" "+row.Text("mode")]++
				}
			}
			open := map[bool]int{true: 2}[tc.link == cudafake.LinkOpen]
			if measured["peer 01 one-way"] != open || measured["peer 01 both-ways"] != open || measured["peer 10 one-way"] != 2 || measured["staged 01 one-way"] != 2 {
				t.Errorf("measured %v", measured)
			}
		})
	}
}

// A path that a link has not is left out, with the reason. What fails ends the bench, and
// leaves the record of what there was.
func TestBenchSchemesOfAClosedLink(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	for _, tc := range []struct {
		paths string
		rows  int
		says  []string
	}{
		{"peer,direct", 4, []string{"not measured: scheme assisted, order serial, path direct, devices 2", "the driver does not allow peer access", "nothing could be measured"}},
		{"peer,staged", 1, []string{"not measured: scheme assisted, order concurrent, path peer, devices 2", "scheme assisted, order concurrent, path staged, devices 2", "NVRTC not found"}},
	} {
		fake := withFake(t)
		fake.SetLink(0, 1, cudafake.LinkClosed)
		file := filepath.Join(t.TempDir(), "s.json")
		code, out, notes := cli("bench", "schemes", "--schemes", "assisted", "--paths", tc.paths, "--device-counts", "2", "--points", "8",
			"--precisions", "float64", "--budget", "1ms", "--record", file)
		for _, says := range tc.says {
			if code != int(command.Failed) || !strings.Contains(notes, says) {
				t.Errorf("exit code %d, want %q:\n%s%s", code, says, out, notes)
			}
		}
		r, err := results.Read(file)
		if err != nil || len(r.Rows) != tc.rows || !strings.Contains(r.Rows[0].Note, "no peer path") {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// Commands on GPUs that are not there, fail, or lack something say what is wrong, and close what they opened.
func TestCommandsBesideGPUs(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	run := "run " + write(t, "c.yaml", "solver: laplace\ngrid: {size: [16, 16]}\nstop: {iterations: 3}\n")
	fails := func(call string, code int) func(f *cudafake.Fake) {
		return func(f *cudafake.Fake) { f.Fail(call, code, 0, 1) }
	}
	lies := func(f *cudafake.Fake) { f.SetLink(1, 0, cudafake.LinkLying) }
	for _, tc := range []struct {
		name, args string
		flag       string
		spoil      func(f *cudafake.Fake)
		code       int
		says       []string
	}{
		{"no GPU", "devices -v", cudafake.Devices(0), nil, 0, []string{"No GPU found; running on the CPU.\nno GPU: no usable CUDA driver: the library exists, but cuInit: "}},
		{"one GPU", "devices", cudafake.Devices(1), nil, 0, []string{"Fake GPU 0"}},
		{"another version than the kernel's", "devices", "", fails("cuInit", int(cuda.CodeDriverMismatch)), 1, []string{"devices.backend: the CUDA driver does not start: cuInit: "}},
		{"a GPU that dies", "devices", "", fails("cuMemcpyPeerAsync", int(cuda.CodeNVLinkError)), int(command.DeviceLost), []string{"p2p: probe the link from device cuda 0 to cuda 1: "}},
		{"auto without NVRTC", run, "", nil, 1, []string{"NVRTC not found", "nowhere", "install the CUDA toolkit"}},
		{"cuda without NVRTC", run + " --set devices.backend=cuda", "", nil, 1, []string{"NVRTC not found"}},
		{"more than there are", run + " --set devices.count=3", "", nil, int(command.Config), []string{"devices.count: must be at most the 2 cuda devices of this machine, got 3"}},
		{"one that is not there", run + " --set devices.ids=[0,2]", "", nil, int(command.Config), []string{"devices.ids: must be cuda devices of this machine, which has 2 (counted from 0), got 2"}},
		{"host", run + " --set devices.backend=host --set devices.count=2", "", nil, 0, []string{"host"}},
		{"no link for messages", "bench pingpong --backend cuda --match wu/V/n=1024", "", lies, 1,
			[]string{"--paths peer: p2p: no peer path from device cuda 1 to cuda 0: ", "use path staged"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := withFake(t, strings.Fields(tc.flag)...)
			if tc.spoil != nil {
				tc.spoil(fake)
			}
			code, out, notes := cli(strings.Fields(tc.args)...)
			if code != tc.code || strings.HasPrefix(tc.args, "bench") && out != "" {
				t.Errorf("exit code %d:\n%s%s", code, out, notes)
			}
			for _, says := range tc.says {
				if !strings.Contains(out+notes, says) {
					t.Errorf("%q is not said:\n%s%s", says, out, notes)
				}
			}
		})
	}
}

// A run with -v and its record list what was tried, also where that is remembered.
func TestRunListsTrials(t *testing.T) {
	withFake(t)
	t.Setenv("HALOX_NVRTC", testdevices.SlowNVRTC(t, 0, "").Library)
	t.Setenv("HALOX_CACHE", t.TempDir())
	file := write(t, "c.yaml", "solver: heat\ngrid: {size: [16, 16]}\nstop: {iterations: 3}\n")
	record := filepath.Join(t.TempDir(), "r.json")
	for range 2 {
		code, _, stderr := cli("run", file, "-v", "--record", record)
		trials := test.Must(results.Read(record))(t).Run.Trials
		if code != 0 || len(trials) == 0 || trials[0].StepSeconds <= 0 ||
			!strings.Contains(stderr, "trials of schemes, the shortest first: ["+trials[0].Scheme+" by "+trials[0].Path) {
			t.Errorf("code %d, %+v, %s", code, trials, stderr)
		}
	}
}
