package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

func TestMain(m *testing.M) {
	os.Exit(testdevices.Main(m, "power.cu", "../internal/sparse/sparse.cuh"))
}

// Ranks, streams and graphs give one eigenvalue and one vector, those of the reference, with the same bits on each
// backend.
func TestOneVector(t *testing.T) {
	sums := exampletest.Sums{}
	for _, c := range []struct {
		devices int
		flags   string
	}{
		{1, "--ranks 1 --size 1 --density 1 --iterations 1"},
		{1, "--ranks 12 --side 2 --size 2 --density 1 --iterations 3"}, // ranks without a row
		{1, "--ranks 5 --size 203 --density 0.05 --iterations 4"},
		{1, "--ranks 12 --side 2 --size 61 --density 0.2 --iterations 3"},
		{1, "--ranks 9 --side 3 --size 7 --density 0.5 --iterations 6 --threads 32"},
		{2, "--ranks 6 --size 97 --density 0.3 --iterations 5 --threads 64"},
		{2, "--ranks 8 --side 4 --size 33 --density 0.1 --iterations 2"},
		{3, "--ranks 9 --size 45 --density 0.7 --iterations 3 --threads 32"},
		{4, "--ranks 3 --size 120 --density 0.02 --iterations 7"},
		{4, "--ranks 4 --side 4 --size 21 --density 1 --iterations 2"},
		{1, "--ranks 7 --size 97 --density 0.1 --iterations 6 --pauses"},
		{2, "--ranks 6 --size 97 --density 0.3 --iterations 6 --pauses"},
		{3, "--ranks 9 --size 45 --density 0.7 --iterations 5 --pauses"},
	} {
		t.Run(fmt.Sprintf("devices=%d/%s", c.devices, strings.ReplaceAll(c.flags, " ", "_")), func(t *testing.T) {
			exampletest.Compare(t, newProgram, sums, c.devices, "--samples 1 "+c.flags)
		})
	}
}

// opened makes a problem ready on host devices for the length of a test.
func opened(t *testing.T, devices int, flags string) compare.Problem {
	t.Helper()
	s := testdevices.Host(t, devices)
	p := newProgram()
	o, err := p.Parse(strings.Fields(flags), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.New(t.Context(), &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// The iteration comes to the eigenvalue that the matrix has by its making, and to the vector of equal elements.
func TestEigenvector(t *testing.T) {
	const iterations = 40
	for _, c := range []struct {
		devices     int
		flags       string
		rows, value float64
	}{
		{1, "--size 400 --density 0.05", 400, 40},
		{2, "--size 200 --density 0.05", 400, 40},
		{3, "--size 151 --density 0.1 --ranks 6", 453, 90},
		{4, "--size 111 --density 0.2 --side 4 --ranks 8", 444, 176},
	} {
		x := opened(t, c.devices, c.flags)
		for _, method := range compare.Methods() {
			run, err := x.Method(method)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			if _, err := run(t.Context(), iterations); err != nil {
				t.Fatal(err)
			}
			values, err := x.Values(iterations)
			if err != nil {
				t.Fatal(err)
			}
			if off := math.Abs(values[0]/c.value - 1); !(off < 1e-12) || len(values) != 1+int(c.rows) {
				t.Errorf("%s: %s: eigenvalue %v, want %v; %d values", c.flags, method, values[0], c.value, len(values))
			}
			for i, v := range values[1:] {
				if off := math.Abs(v*math.Sqrt(c.rows) - 1); !(off < 1e-10) {
					t.Fatalf("%s: %s: element %d is %v, want %v", c.flags, method, i, v, 1/math.Sqrt(c.rows))
				}
			}
		}
	}
}

// The bits are those of the cut into blocks and of the ranks of a block, whatever the number of devices.
func TestAnyDevices(t *testing.T) {
	for _, side := range []int{2, 3} {
		var want uint32
		for _, devices := range []int{1, side, side * side} {
			s := testdevices.Host(t, devices)
			p := newProgram()
			o, err := p.Parse(strings.Fields(fmt.Sprintf("--samples 1 --iterations 3 --size 101 --density 0.1 --side %d --ranks %d", side, 3*side*side/devices)), os.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Run(t.Context(), &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if devices == 1 {
				want = got
			} else if got != want {
				t.Errorf("%d x %d blocks on %d devices: checksum %08X, on one %08X", side, side, devices, got, want)
			}
		}
	}
}

// The reference tells values that are wrong, and those of another iteration; blocks that have another vector than the
// others of their column are found.
func TestCheck(t *testing.T) {
	x := opened(t, 2, "--size 300 --density 0.1").(*iteration)
	run, err := x.Method(compare.Ranks)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	values, err := x.Values(3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Check(t.Context(), values, 3); err != nil {
		t.Error(err)
	}
	if _, err := x.Check(t.Context(), values, 2); err == nil {
		t.Error("the vector of another iteration passes")
	}
	for _, i := range []int{0, 1, 600} {
		values[i] *= 1 + 1e-9
		if _, err := x.Check(t.Context(), values, 3); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("value %d is", i)) {
			t.Errorf("a wrong value %d gives %v", i, err)
		}
		values[i] /= 1 + 1e-9
	}
	if err := compare.Fill(x.All[3].Vector(1), func(to []float64, first int64) {
		for k := range to {
			to[k] = values[1+300+first+int64(k)]
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Values(3); err == nil || !strings.Contains(err.Error(), "in row 1 of blocks") {
		t.Errorf("a block with a vector of its own gives %v", err)
	}
}

func TestRefusals(t *testing.T) {
	exampletest.Refused(t, newProgram, map[string]string{
		"--memory-rate 0":                  "want rates above 0",
		"--size -3":                        "--size -3: want 1 to 2147483647",
		"--side -1":                        "--side -1: want 0 to 16",
		"--density 1.5":                    "--density 1.5: want more than 0, and up to 1",
		"--devices 3 --side 2 --size 9":    "--side 2: 4 blocks do not go evenly onto 3 devices",
		"--devices 2 --ranks 5 --size 100": "--ranks 5: the ranks of a device form 2 groups of the same size",
		"--iterations 2000000":             "--iterations 2000000: want 1 to 1048576",
	})
	exampletest.Stopped(t, newProgram, "--size 100")
}

func TestCompiles(t *testing.T) { exampletest.Compile(t, source, 96, nil) }
