package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

var tests = exampletest.Ranks{New: newProgram}

func TestMain(m *testing.M) { exampletest.Main(m, "power.cu") }

// Device ranks give the eigenvalue and vector of the reference, with the same bits on each backend.
func TestVector(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	for _, c := range []struct {
		devices int
		flags   string
	}{
		{1, "--ranks 1 --size 1 --density 1 --iterations 1"},
		{1, "--ranks 12 --side 2 --size 2 --density 1 --iterations 3"}, // device ranks without a row
		{1, "--ranks 5 --size 203 --density 0.05 --iterations 4"},
		{1, "--ranks 12 --side 2 --size 61 --density 0.2 --iterations 3"},
		{1, "--ranks 9 --side 3 --size 7 --density 0.5 --iterations 6 --threads 32"},
		{2, "--ranks 6 --size 97 --density 0.3 --iterations 5 --threads 64"},
		{2, "--ranks 8 --side 4 --size 33 --density 0.1 --iterations 2"},
		{3, "--ranks 9 --size 45 --density 0.7 --iterations 3 --threads 32"},
		{4, "--ranks 3 --size 120 --density 0.02 --iterations 7"},
		{4, "--ranks 4 --side 4 --size 21 --density 1 --iterations 2"},
	} {
		tests.OneAnswer(t, c.devices, "--samples 1 "+c.flags)
	}
}

// ran returns an iteration on CPU devices and its result.
func ran(t *testing.T, devices, iterations, ranks int, m matrix) (*power, []float64) {
	t.Helper()
	x := test.Must(newPower(exampletest.Setup(t, testdevices.Host(t, devices), devices, ranks), m))(t)
	test.Check(t, x.Reset())
	test.Must(x.Run(t.Context(), iterations))(t)
	values := test.Must(x.Values(iterations))(t)
	return x, values
}

// The iteration converges to the eigenvalue of the matrix and to the vector of equal elements.
func TestEigenvector(t *testing.T) {
	for _, c := range []struct {
		devices int
		ranks   int
		m       matrix
	}{
		{1, 3, matrix{400, 20, 1}},
		{2, 4, matrix{200, 10, 2}},
		{3, 6, matrix{151, 15, 3}},
		{4, 8, matrix{111, 22, 4}},
	} {
		_, values := ran(t, c.devices, 40, c.ranks, c.m)
		if off := math.Abs(values[0]/c.m.eigenvalue() - 1); !(off < 1e-12) || len(values) != 1+int(c.m.rows()) {
			t.Errorf("%v: eigenvalue %v, want %v; %d values", c.m, values[0], c.m.eigenvalue(), len(values))
		}
		for i, v := range values[1:] {
			if off := math.Abs(v*math.Sqrt(float64(c.m.rows())) - 1); !(off < 1e-10) {
				t.Fatalf("%v: element %d is %v", c.m, i, v)
			}
		}
	}
}

// The bits depend on the cut into blocks and the device ranks of a block, not on the number of devices.
func TestAnyDevices(t *testing.T) {
	for _, side := range []int{2, 3} {
		sums := map[uint32]bool{}
		for _, devices := range []int{1, side, side * side} {
			_, values := ran(t, devices, 3, 3*side*side/devices, matrix{101, 10, side})
			sums[example.ChecksumOf(values)] = true
		}
		if len(sums) != 1 {
			t.Errorf("%d x %d blocks have the checksums %v", side, side, sums)
		}
	}
}

// The reference tells wrong values and those of another iteration; a block with another vector than those of its column
// is found.
func TestCheck(t *testing.T) {
	x, values := ran(t, 2, 3, 2, matrix{300, 30, 2})
	if _, err := x.Check(values, 2); err == nil {
		t.Error("the vector of another iteration passes")
	}
	for _, i := range []int{0, 1, 600} {
		values[i] *= 1 + 1e-9
		test.Says(t, test.ErrorOf(x.Check(values, 3)), fmt.Sprintf("value %d is", i))
		values[i] /= 1 + 1e-9
	}
	wrong := x.all[3]
	test.Check(t, example.Copy(wrong.device, wrong.vectors.All(), wrong.image.All()))
	test.Says(t, test.ErrorOf(x.Values(3)), "in row 1")
}

// A row has perRow different columns in order, whose values add up to 2 perRow; apply is the product of a dense matrix.
func TestRows(t *testing.T) {
	for _, m := range []matrix{{1, 1, 2}, {50, 1, 2}, {77, 77, 1}, {60, 7, 3}, {60, 8, 1}} {
		x, want := make([]float64, m.rows()), make([]float64, m.rows())
		for i := range x {
			x[i] = float64(i%5 - 2)
		}
		for row := range m.rows() {
			for j := range m.side {
				columns, values := m.row(nil, nil, row, j)
				sum := 0.0
				for i, c := range columns {
					if c < 0 || int64(c) >= m.n || i > 0 && c <= columns[i-1] || values[i] < 1 || values[i] > 3 {
						t.Fatalf("%v: row %d has columns %v and values %v", m, row, columns, values)
					}
					sum += values[i]
					want[row] += values[i] * x[int64(j)*m.n+int64(c)]
				}
				if int64(len(columns)) != m.perRow || sum != float64(2*m.perRow) {
					t.Fatalf("%v: row %d has %d entries, which add up to %v", m, row, len(columns), sum)
				}
			}
		}
		for i, v := range m.apply(x) {
			if v != want[i] {
				t.Errorf("%v: row %d is %v, want %v", m, i, v, want[i])
			}
		}
	}
}

func TestRejects(t *testing.T) {
	tests.Rejects(t, map[string]string{
		"--size -3":                        "--size must be at least 1, and up to 4294967296 entries of a block, got -3",
		"--size 20000000 --density 1":      "up to 4294967296 entries of a block, got 20000000",
		"--side 17":                        "--side: must be at most 16",
		"--density 1.5":                    "--density must be above 0 and up to 1, got 1.5",
		"--density NaN":                    "--density must be above 0",
		"--devices 3 --side 2 --size 9":    "--side: must be at most 16, with a multiple of 3 blocks, at most",
		"--devices 1 --side 9 --size 9":    "at most 64 per device",
		"--devices 2 --ranks 5 --size 100": "--ranks: must be a multiple of 2, the blocks of a device, got 5",
	})
}

func TestCompiles(t *testing.T) { exampletest.Compile(t, source(128), 96, nil) }
