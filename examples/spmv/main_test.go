package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	os.Exit(testdevices.Main(m, "spmv.cu", "../internal/sparse/sparse.cuh"))
}

// Ranks, streams and graphs give one product, that of the reference, with the same bits on each backend.
func TestOneProduct(t *testing.T) {
	sums := exampletest.Sums{}
	for _, c := range []struct {
		devices int
		flags   string
	}{
		{1, "--ranks 1 --size 1 --density 1 --iterations 1"},
		{1, "--ranks 12 --side 2 --size 2 --density 1 --iterations 3"}, // ranks without a row
		{1, "--ranks 5 --size 203 --density 0.05 --iterations 4 --data reals"},
		{1, "--ranks 12 --side 2 --size 61 --density 0.2 --iterations 3 --data reals"},
		{1, "--ranks 9 --side 3 --size 7 --density 0.1 --iterations 2"},
		{2, "--ranks 6 --size 97 --density 0.3 --iterations 5 --threads 64"},
		{2, "--ranks 8 --side 4 --size 33 --density 0.1 --iterations 2 --data reals"},
		{3, "--ranks 6 --size 45 --density 0.7 --iterations 3 --data reals --threads 32"},
		{4, "--ranks 3 --size 120 --density 0.02 --iterations 3"},
		{4, "--ranks 4 --side 4 --size 21 --density 1 --iterations 2 --data reals"},
		{2, "--ranks 6 --size 97 --density 0.3 --iterations 5 --pauses"},
		{3, "--ranks 6 --size 45 --density 0.7 --iterations 4 --data reals --pauses"},
	} {
		t.Run(fmt.Sprintf("devices=%d/%s", c.devices, strings.ReplaceAll(c.flags, " ", "_")), func(t *testing.T) {
			exampletest.Compare(t, newProgram, sums, c.devices, "--samples 1 "+c.flags)
		})
	}
}

// A matrix that no device has room for is refused, with what is lacking.
func TestNoRoom(t *testing.T) {
	err := newProgram().Command(t.Context(), strings.Fields("--backend host --devices 1 --size 20000000 --density 1"), io.Discard)
	if !errors.Is(err, streams.ErrOutOfMemory) {
		t.Errorf("the error is %v", err)
	}
}

// run returns the checksum of a product on host devices.
func run(t *testing.T, devices int, flags string) uint32 {
	t.Helper()
	s := testdevices.Host(t, devices)
	p := newProgram()
	o, err := p.Parse(strings.Fields("--samples 1 --iterations 3 "+flags), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Run(t.Context(), &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// The bits are those of the cut into blocks, whatever the number of devices and of ranks: 9 devices have a block each.
func TestAnyDevices(t *testing.T) {
	for _, side := range []int{2, 3} {
		flags := fmt.Sprintf("--size 101 --density 0.1 --data reals --side %d", side)
		want := run(t, 1, flags+fmt.Sprintf(" --ranks %d", side*side))
		for _, devices := range []int{1, side, side * side} {
			each := side * side / devices
			if got := run(t, devices, flags+fmt.Sprintf(" --ranks %d", 3*each)); got != want {
				t.Errorf("%d x %d blocks on %d devices: checksum %08X, on one %08X", side, side, devices, got, want)
			}
		}
	}
}

// The reference tells a product that is wrong, and that of the other input.
func TestCheck(t *testing.T) {
	s := testdevices.Host(t, 1)
	for _, c := range []struct {
		data string
		off  float64
	}{{"integers", 1}, {"reals", 1e-12}} {
		p := newProgram()
		o, err := p.Parse([]string{"--data", c.data, "--size", "300", "--density", "0.1", "--side", "2"}, os.Stderr)
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
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
		if values, err := x.Values(1); err != nil || len(values) != 600 || values[17] != 0 {
			t.Errorf("after a reset %d values, %v", len(values), err)
		}
		if _, err := run(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		values, err := x.Values(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Check(t.Context(), values, 1); err != nil {
			t.Error(err)
		}
		if _, err := x.Check(t.Context(), values, 2); err == nil {
			t.Errorf("%s: the product of another input passes", c.data)
		}
		values[599] += c.off
		if _, err := x.Check(t.Context(), values, 1); err == nil || !strings.Contains(err.Error(), "row 599") {
			t.Errorf("%s: a wrong row gives %v", c.data, err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusals(t *testing.T) {
	exampletest.Refused(t, newProgram, map[string]string{
		"--memory-rate 0":                  "want rates above 0",
		"--data words":                     "--data words: want integers or reals",
		"--size 0":                         "--size 0: want 1 to 2147483647",
		"--side 17":                        "--side 17: want 0 to 16",
		"--density 0":                      "--density 0: want more than 0, and up to 1",
		"--density NaN":                    "--density NaN: want more than 0",
		"--devices 2 --side 3 --size 9":    "--side 3: 9 blocks do not go evenly onto 2 devices",
		"--devices 1 --side 9 --size 9":    "--side 9: 81 blocks on each of 1 devices, which hold 64",
		"--devices 2 --ranks 3 --size 100": "--ranks 3: the ranks of a device form 2 groups of the same size",
		"--method events":                  "--method events: want all, or different ones of ranks,streams,graph",
	})
	exampletest.Stopped(t, newProgram, "--size 100")
}

func TestCompiles(t *testing.T) { exampletest.Compile(t, source, 80, nil) }
