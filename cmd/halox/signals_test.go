//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/field"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/streams"
)

// soakVariable says how long TestSignalsAtAnyMoment and TestKilledRuns go on, such as 1h. Otherwise they have a few rounds.
const soakVariable = "HALOX_TEST_SIGNALS"

// Whenever commands are told to stop, once or more, or are killed: each file that they write is whole or as it was
// before, the record names the files that belong to it, and these hold the steps that it says. After one signal nothing
// that was computed is lost. All rounds write to the same names, so that files of earlier runs are there.
func TestSignalsAtAnyMoment(t *testing.T) {
	rounds, end := 5, time.Time{}
	if testdevices.Long() {
		rounds = 60
	}
	if text := os.Getenv(soakVariable); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
		end = time.Now().Add(long)
	}
	s := &soak{T: t, dir: t.TempDir(), found: map[string]int{}}
	s.backend, s.devices = tested(t)
	s.sizes = []string{"[9,8,7]", "[300,200]", "[60,50,40]", "[1500,1400]", "[90,90,90]"}
	if s.backend == streams.CUDA {
		s.sizes = append(s.sizes, "[8192,8192]", "[512,512,512]")
	}
	for n := 0; n < rounds || time.Now().Before(end); n++ {
		s.round(n, rand.New(rand.NewPCG(uint64(testdevices.Seed()), uint64(n))))
		if t.Failed() {
			break
		}
	}
	t.Log(s.found)
}

// tested returns the backend that processes of halox use, and the maximum number of devices: CPU devices, unless
// HALOX_TEST_BACKEND is cuda.
func tested(t *testing.T) (backend streams.Backend, devices int) {
	t.Helper()
	if os.Getenv("HALOX_TEST_BACKEND") != string(streams.CUDA) {
		return streams.Host, 3
	}
	session := test.Must(halo.Open(t.Context(), halo.Devices{Backend: streams.CUDA}))(t)
	devices = len(session.Devices)
	test.Check(t, session.Close())
	return streams.CUDA, devices
}

// soak is rounds of commands that are told to stop.
type soak struct {
	*testing.T
	dir     string
	found   map[string]int // how rounds ended
	sizes   []string       // of grids
	backend streams.Backend
	devices int // at most
}

// names are the files that commands write.
var names = []string{"u.npy", "u.png", "t.json", "r.json"}

func (s *soak) at(name string) string { return filepath.Join(s.dir, name) }

// files returns a hash of each file that is there.
func (s *soak) files() map[string][32]byte {
	all := map[string][32]byte{}
	for _, name := range names {
		if data, err := os.ReadFile(s.at(name)); err == nil {
			all[name] = sha256.Sum256(data)
		}
	}
	return all
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// command returns a random command, and of a run the settings that decide its field.
func (s *soak) command(r *rand.Rand) (args, problem []string) {
	if backend := string(s.backend); r.IntN(8) == 0 {
		return pick(r,
			[]string{"bench", "exchange", "--backend", backend, "--devices", fmt.Sprint(min(2, s.devices)), "--points", "8,32", "--record", s.at("r.json")},
			[]string{"bench", "pack", "--backend", backend, "--record", s.at("r.json")},
			[]string{"bench", "schemes", "--backend", backend, "--device-counts", fmt.Sprint(min(2, s.devices)), "--points", "16", "--budget", "1s", "--record", s.at("r.json")},
			[]string{"verify", s.at("c.yaml"), "--set", "grid.size=[9,8,7]"}), nil
	}
	size := pick(r, s.sizes...)
	problem = []string{"run", s.at("c.yaml"), "--set", "grid.size=" + size, "--set", "precision=" + pick(r, "float32", "float64")}
	args = append(slices.Clone(problem),
		"--set", "exchange.scheme="+pick(r, "auto", "baseline", "two-stream", "assisted", "fused", "resident"),
		"--set", fmt.Sprint("devices.count=", 1+r.IntN(s.devices)),
		"--set", fmt.Sprint("stop.iterations=", pick(r, 1, 30, 1_000_000_000, 1_000_000_000)),
	)
	for i, flag := range []string{"output.field=", "output.picture="} {
		if r.IntN(4) > 0 {
			args = append(args, "--set", flag+s.at(names[i]))
		}
	}
	if r.IntN(4) == 0 {
		args = append(args, "--trace", s.at("t.json"))
	}
	if r.IntN(8) > 0 {
		args = append(args, "--record", s.at("r.json"))
	}
	if r.IntN(3) == 0 {
		args = append(args, "--set", "exact=x+y")
	}
	return args, problem
}

// round runs one command, sends it signals, and looks at what it leaves.
func (s *soak) round(n int, r *rand.Rand) {
	s.Helper()
	if n == 0 {
		config := "solver: heat\ngrid: {size: [9, 9]}\ninitial: x*(1-x)*y\ndevices: {backend: " + string(s.backend) + "}\n"
		test.Check(s, os.WriteFile(s.at("c.yaml"), []byte(config), 0o644))
	}
	args, problem := s.command(r)
	before := s.files()
	p := start(s.T, "", "", args...)
	if r.IntN(10) > 0 {
		p.listens(s.T)
	}
	signals := []syscall.Signal{pick(r, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)}
	for r.IntN(3) == 0 {
		signals = append(signals, pick(r, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL))
	}
	for _, signal := range signals {
		time.Sleep(time.Duration(r.Int64N(int64(pick(r, 20*time.Millisecond, 400*time.Millisecond, 3*time.Second)))))
		_ = p.cmd.Process.Signal(signal) // it may have ended
	}
	select {
	case <-p.ended:
	case <-time.After(5 * time.Minute):
		s.Fatalf("%v, %v: it goes on for five minutes:\n%s", args, signals, &p.out)
	}
	code := p.cmd.ProcessState.ExitCode()
	s.found[fmt.Sprint("exit code ", code)]++
	fail := func(format string, what ...any) {
		s.Errorf("round %d: %v, %v, exit code %d: %s\n%s", n, args, signals, code, fmt.Sprintf(format, what...), &p.out)
	}
	if code != 0 && code != int(command.Interrupted) && code != -1 {
		fail("it failed")
	}
	if len(signals) == 1 && forced.MatchString(p.out.String()) {
		fail("one signal lost what there was")
	}
	s.leftovers(code, fail)
	after := s.files()
	s.check(args, problem, before, after, len(signals) == 1 && code >= 0, code < 0, fail)
}

// forced is what a run says that loses what it has computed.
var forced = regexp.MustCompile("by force while (stepping|reading|writing|comparing)")

// leftovers finds temporary files, which only a process that was killed may leave, and removes them.
func (s *soak) leftovers(code int, fail func(string, ...any)) {
	left, _ := filepath.Glob(s.at(".halox-*"))
	if len(left) > 0 && code >= 0 {
		fail("%v are left", left)
	}
	for _, name := range left {
		s.found["temporary files of killed processes"]++
		os.Remove(name)
	}
}

// check looks at the files after a command, and compares them with those before it.
func (s *soak) check(
	args, problem []string, before, after map[string][32]byte, gentle, killed bool, fail func(string, ...any),
) {
	whole := map[string]func(string) error{
		"u.npy":  func(name string) error { _, _, err := field.Read(name); return err },
		"u.png":  func(name string) error { return decodePNG(name) },
		"t.json": func(name string) error { _, err := trace.Read(name); return err },
		"r.json": func(name string) error { _, err := results.Read(name); return err },
	}
	for name := range after {
		if err := whole[name](s.at(name)); err != nil {
			fail("%s is not whole: %v", name, err)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			fail("%s is lost", name)
		}
	}
	if problem == nil || !slices.Contains(args, s.at("r.json")) {
		return
	}
	record, err := results.Read(s.at("r.json"))
	changed := after["r.json"] != before["r.json"]
	switch {
	case err != nil && after["r.json"] != [32]byte{}:
		fail("%v", err)
	case !changed:
		s.found["no new record"]++
		for _, name := range names {
			if after[name] != before[name] {
				fail("%s is new and the record is not", name)
			}
		}
		return
	}
	for _, o := range record.Run.Outputs {
		name := filepath.Base(o.File)
		switch {
		case o.Missing == "":
			s.found["with its record"]++
			if _, ok := after[name]; !ok {
				fail("%s is not there, and the record does not say so", name)
			}
			if o.Kind == "field" {
				s.compare(problem, record.Run.Iterations, fail)
			}
		case gentle:
			fail("%s is missing after one signal: %s", name, o.Missing)
		case after[name] != before[name] && killed: // between its name and the record
			s.found["new files that the record of a killed process calls missing"]++
		case after[name] != before[name]:
			fail("the record says that %s is of another run (%s), and it is new", name, o.Missing)
		default:
			s.found["missing as the record says"]++
		}
	}
}

// compare compares the field with that of one run of its own after so many steps, unless that takes long.
func (s *soak) compare(problem []string, steps int, fail func(string, ...any)) {
	_, values, _ := field.Read(s.at("u.npy"))
	if steps > 20_000 || s.backend == streams.Host && steps*len(values) > 200_000_000 {
		return
	}
	s.found["fields compared"]++
	want := s.at("want.npy")
	code, _, stderr := cli(append(slices.Clone(problem), "-q", "--set", "output.field="+want, "--set", fmt.Sprint("stop.iterations=", steps))...)
	if code != 0 {
		fail("%s", stderr)
	}
	if !bytes.Equal(content(s.T, want), content(s.T, s.at("u.npy"))) {
		fail("the field is not that after the %d steps of the record", steps)
	}
}

func decodePNG(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = png.Decode(file)
	return err
}
