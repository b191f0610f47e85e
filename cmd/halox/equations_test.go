package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Equations from files have the fields of NumPy programs that share no code with halox, to rounding: on one and on four
// CPU devices, with every scheme, in two processes and on GPUs that the CPU emulates, with the same bits everywhere.
func TestEquationsOfNumPy(t *testing.T) {
	testdevices.Once(t)
	if out, err := exec.Command("python3", "-c", "import numpy").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: needs Python with NumPy: %s", out)
	}
	all := []struct {
		name   string
		fields []string
		within float64 // of the largest value
		says   string  // with which blocked rejects it; ranks too, unless it is about levels
	}{
		{"grayscott", []string{"u", "v"}, 1e-13, ""}, {"burgers", []string{"u", "v"}, 1e-13, ""}, {"life", []string{"u"}, 0, ""},
		{"sir", []string{"I", "R", "S"}, 1e-13, ""}, {"shallow", []string{"h", "u", "v"}, 1e-12, ""},
		{"cahnhilliard", []string{"u"}, 1e-13, "runs steps of one stage"},
		{"wave", []string{"u"}, 1e-12, "needs variables of two levels"},
		{"kleingordon", []string{"u"}, 1e-12, "needs variables of two levels"},
		{"schrodinger", []string{"im", "re"}, 1e-12, "runs steps of one stage"},
	}
	for n, c := range testdevices.Some(4, all) {
		config := filepath.Join("testdata", "equations", c.name+".yaml")
		dir := t.TempDir()
		args := func(name string, more ...string) (all, files []string) {
			to := "{"
			for i, f := range c.fields {
				files = append(files, filepath.Join(dir, name+"-"+f+".npy"))
				to += fmt.Sprintf("%s%s: %s", map[bool]string{true: ", "}[i > 0], f, files[i])
			}
			all = []string{"run", config, "-q", "--set", "output.field=" + to + "}"}
			for _, set := range more {
				all = append(all, "--set", set)
			}
			return all, files
		}
		var want []string // files
		same := func(t *testing.T, files []string) {
			t.Helper()
			for i := range files {
				if !slices.Equal(content(t, files[i]), content(t, want[i])) {
					t.Errorf("field %s has other bits", c.fields[i])
				}
			}
		}
		t.Run(c.name, func(t *testing.T) {
			line, files := args("one", "devices.backend=host", "devices.count=1", "exchange.scheme=baseline")
			if code, _, stderr := cli(line...); code != 0 {
				t.Fatal(stderr)
			}
			program := exec.Command("python3", append([]string{"testdata/equations/equations.py", c.name}, files...)...)
			out, err := program.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for i, number := range strings.Fields(string(out)) {
				if off := test.Must(strconv.ParseFloat(number, 64))(t); !(off <= c.within) {
					t.Errorf("field %s is %v off, relative to its maximum", c.fields[i], off)
				}
			}
			want = files
		})
		if want == nil {
			continue
		}
		for _, name := range testdevices.Some(2, scheme.All()) {
			t.Run(c.name+"/"+string(name), func(t *testing.T) {
				line, files := args(string(name), "devices.backend=host", "devices.count=4", "exchange.scheme="+string(name))
				code, _, stderr := cli(line...)
				if name == scheme.Blocked && c.says != "" || name == scheme.Ranks && c.says == "runs steps of one stage" {
					if !strings.Contains(stderr, c.says) {
						t.Errorf("exit %d: %s", code, stderr)
					}
					return
				}
				if code != 0 {
					t.Fatal(stderr)
				}
				same(t, files)
			})
		}
		if !testdevices.Turn(n, 4, 4) { // a program of each takes a compiler of C++ its time
			continue
		}
		t.Run(c.name+"/processes", func(t *testing.T) {
			testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
				line, files := args("processes", "devices.backend=host", "devices.count=2")
				launchHalox(t, in, 2, nil, line...).Succeeds(t)
				same(t, files)
			})
		})
		t.Run(c.name+"/gpus", func(t *testing.T) {
			for _, set := range testdevices.Environment(t, 2) {
				name, value, _ := strings.Cut(set, "=")
				t.Setenv(name, value)
			}
			for _, name := range []scheme.Scheme{scheme.Fused, scheme.Resident} {
				line, files := args("gpu-"+string(name), "devices.backend=cuda", "exchange.scheme="+string(name))
				if code, _, stderr := cli(line...); code != 0 {
					t.Fatal(stderr)
				}
				same(t, files)
			}
		})
	}
}

// BenchmarkOpenEquation measures what a run of an equation does between its file and the first launch, on CPU devices, so
// without the compiler of CUDA: on a small grid, whose fill is short.
func BenchmarkOpenEquation(b *testing.B) {
	text := test.Must(os.ReadFile(filepath.Join("testdata", "equations", "shallow.yaml")))(b)
	session := test.Must(halo.Open(b.Context(), halo.Devices{Backend: streams.Host, Count: 2}))(b)
	defer session.Close()
	for b.Loop() {
		c := test.Must(configs.Parse("shallow.yaml", text, configs.Options{}))(b)
		setup := test.Must(solvers.Open(b.Context(), session, test.Must(c.Problem())(b), solvers.OpenOptions{}))(b)
		solver := test.Must(setup.New(b.Context()))(b)
		b.StopTimer()
		test.Check(b, solver.Close())
		setup.Close()
		b.StartTimer()
	}
}
