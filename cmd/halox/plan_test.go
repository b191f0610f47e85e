package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

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

// measured lets halox find a link model of host devices in its cache: messages up to
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
var memoryOfTheMachine = regexp.MustCompile(`(?m)^((?:host \d|the host) .*\d) +[\d.]+ [KMGT]iB +[\d.]+ [KMGT]iB$|^(device +field .* host)  free +total$`)

// limitOfTheMachine is which number that is.
var limitOfTheMachine = regexp.MustCompile(`(?m)(what is free on the host is) .*$`)

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

// The paths of a plan are those of a run.
func TestPlanForcesPaths(t *testing.T) {
	measured(t)
	file := write(t, "c.yaml", planned)
	for _, path := range []string{"staged", "peer", "direct"} {
		code, out, errs := cli("plan", file, "--set", "exchange.path="+path)
		if code != 0 || strings.Count(out, path+"  asked for") != 8 {
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
