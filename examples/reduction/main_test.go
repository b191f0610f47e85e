package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "reduction.cu")) }

// Ranks, streams and graphs give one sum, that of the reference, with the same bits on each backend.
func TestOneSum(t *testing.T) {
	all := exampletest.Sums{}
	for _, c := range []struct {
		devices int
		flags   string
	}{
		{1, "--ranks 1 --numbers 1 --iterations 1"},
		{1, "--ranks 7 --numbers 1001 --iterations 4 --data reals"},
		{1, "--per-multiprocessor 0 --numbers 0 --iterations 2"},
		{2, "--ranks 3 --numbers 5 --iterations 3"},
		{2, "--ranks 5 --numbers 4099 --iterations 6 --data reals --threads 96"},
		{3, "--ranks 2 --numbers 2003 --iterations 5 --data reals --threads 32"},
		{4, "--ranks 3 --numbers 0 --iterations 5"},
		{4, "--ranks 2 --numbers 777 --iterations 2 --data reals"},
		{2, "--ranks 5 --numbers 999 --iterations 6 --data reals --pauses"},
	} {
		t.Run(fmt.Sprintf("devices=%d/%s", c.devices, strings.ReplaceAll(c.flags, " ", "_")), func(t *testing.T) {
			sums := all
			if strings.Contains(c.flags, "--per-multiprocessor") {
				sums = nil // each backend has as many ranks as fit
			}
			exampletest.Compare(t, newProgram, sums, c.devices, "--samples 2 "+c.flags)
		})
	}
}

// The same integers on any number of devices have one sum, and reals too where the ranks of all are as many: the order
// is that of their numbers.
func TestAnyDevices(t *testing.T) {
	for _, data := range []string{"integers", "reals"} {
		var first uint32
		for devices := 1; devices <= 4; devices++ {
			s := testdevices.Host(t, devices)
			p := newProgram()
			o, err := p.Parse(strings.Fields(fmt.Sprintf("--samples 1 --iterations 3 --data %s --ranks %d --numbers %d", data, 12/devices, 12000/devices)), os.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Run(t.Context(), &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o, &strings.Builder{})
			if err != nil {
				t.Fatal(err)
			}
			if devices == 1 {
				first = got
			} else if got != first {
				t.Errorf("%s: checksum %08X on %d devices, %08X on one", data, got, devices, first)
			}
		}
	}
}

// The reference tells a sum that is wrong.
func TestCheck(t *testing.T) {
	s := testdevices.Host(t, 1)
	p := newProgram()
	for _, c := range []struct {
		data    string
		numbers string
		off     float64
	}{{"integers", "1000", 1}, {"reals", "1000", 1e-10}} {
		o, err := p.Parse([]string{"--data", c.data, "--numbers", c.numbers}, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		x, err := p.New(t.Context(), &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o)
		if err != nil {
			t.Fatal(err)
		}
		run, err := x.Method(compare.Ranks)
		if err != nil {
			t.Fatal(err)
		}
		for _, iterations := range []int{1, 2} {
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			if values, err := x.Values(iterations); err != nil || values[0] == values[0] {
				t.Errorf("%s: after a reset the sum is %v, %v", c.data, values, err)
			}
			if _, err := run(t.Context(), iterations); err != nil {
				t.Fatal(err)
			}
			values, err := x.Values(iterations)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.Check(t.Context(), values, iterations); err != nil {
				t.Error(err)
			}
			if _, err := x.Check(t.Context(), values, iterations+1); err == nil {
				t.Errorf("%s: the sum of another iteration passes", c.data)
			}
			for i, want := range []string{"the sum is", "the sums of all iterations add up to"} {
				wrong := slices.Clone(values)
				wrong[i] += c.off
				if _, err := x.Check(t.Context(), wrong, iterations); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: a wrong value %d gives %v", c.data, i, err)
				}
			}
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusals(t *testing.T) {
	exampletest.Refused(t, newProgram, map[string]string{
		"--data words":            "--data words: want integers or reals",
		"--numbers -1":            "--numbers -1: want 0 to 17179869184",
		"--iterations 0":          "--iterations 0: want 1 to 1048576",
		"--samples 0":             "--samples 0: want 1 to 1000",
		"--ranks -1":              "--ranks -1: want 0 to 65536",
		"--per-multiprocessor 65": "--per-multiprocessor 65: want 0 to 64",
		"--threads 48":            "--threads 48: want a multiple of 32",
		"--threads 2048":          "--threads 2048: want 32 to 512",
		"--method both":           "--method both: want all, or different ones of ranks,streams,graph",
		"--method ranks,ranks":    "--method ranks,ranks: want all, or different ones",
		"--limit 0s":              "--limit 0s: want more than 0",
		"--limit long":            `invalid value "long"`,
		"more":                    `"more" is no flag`,
		"--devices -1":            "-1 is negative",
	})
	exampletest.Stopped(t, newProgram, "--numbers 100")
}

func TestCompiles(t *testing.T) { exampletest.Compile(t, source, 64, nil) }
