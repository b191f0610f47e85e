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

func TestMain(m *testing.M) { exampletest.Main(m, "diffusion.cu") }

// Device ranks give the bits of the reference on any number of devices, however they share the levels and rows; a second
// run goes on where the first has ended.
func TestBits(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	const steps = 3 // odd: the second run begins with the other field
	for _, c := range []struct {
		size  size
		ranks []int
	}{
		{size{7, 5, 3}, []int{1, 2, 6, 15, 16}},
		{size{1, 1, 1}, []int{1, 2}},
		{size{2, 1, 2}, []int{3}},
		{size{70, 4, 2}, []int{3, 8}}, // rows longer than a block has threads
		{size{16, 9, 4}, []int{4, 7}},
	} {
		for _, n := range c.ranks {
			t.Run(fmt.Sprintf("%v/ranks=%d", c.size, n), func(t *testing.T) {
				exampletest.Each(t, 4, n, func(t *testing.T, s *example.Setup) {
					x := test.Must(newDiffusion(s, c.size))(t)
					test.Check(t, x.Reset())
					for run := 1; run <= 2; run++ {
						test.Must(x.Run(t.Context(), steps))(t)
						values := test.Must(x.Values(steps))(t)
						if _, err := x.Check(values, run*steps); err != nil {
							t.Error(err)
						}
						if _, err := x.Check(values, run*steps-1); err == nil && c.size.ny > 3 {
							t.Error("the values of another step pass")
						}
					}
				})
			})
		}
	}
}

// Diffusion keeps a constant, the sum of each level, and a linear field far from where its ends meet. Roughness
// decreases.
func TestReference(t *testing.T) {
	const nx, ny, nz = 16, 15, 2
	sums := func(g grid) (v, squares float64) {
		for _, u := range g.values {
			v += u
			squares += u * u
		}
		return v, squares
	}
	plane := filled(nx, ny, nz, func(x, y, z int) float64 { return float64(2*x - 3*y + z) })
	after := reference(plane, 1)
	for y := 3; y < ny-3; y++ {
		for x := 3; x < nx-3; x++ {
			if got := after.at(x, y, 1); got != plane.at(x, y, 1) {
				t.Errorf("a linear field becomes %v at %d, %d, want %v", got, x, y, plane.at(x, y, 1))
			}
		}
	}
	rough := start(nx, ny, nz)
	before, squaresBefore := sums(rough)
	later, squaresLater := sums(reference(rough, 10))
	if math.Abs(later/before-1) > 1e-13 {
		t.Errorf("the sum %v becomes %v", before, later)
	}
	if squaresLater >= squaresBefore*(1-1e-5) {
		t.Errorf("the sum of squares %v becomes %v", squaresBefore, squaresLater)
	}
}

// The largest share of a device rank is as small as possible.
func TestShare(t *testing.T) {
	for _, c := range []struct{ ny, nz, ranks, chunks, slabs int64 }{
		{320, 26, 1, 1, 1},
		{320, 26, 132, 26, 5},
		{320, 26, 528, 26, 20},
		{320, 26, 20, 13, 1},
		{1, 1, 9, 1, 1},
		{2, 3, 100, 3, 2},
	} {
		p := part{Nx: 1, Ny: c.ny, Nz: c.nz}
		p.share(c.ranks)
		most := func(chunks, slabs int64) int64 {
			return ((c.nz + chunks - 1) / chunks) * ((c.ny + slabs - 1) / slabs)
		}
		if p.Chunks*p.Slabs > c.ranks || most(p.Chunks, p.Slabs) > most(c.chunks, c.slabs) {
			t.Errorf("%d device ranks share %d levels and %d rows as %d x %d", c.ranks, c.nz, c.ny, p.Chunks, p.Slabs)
		}
	}
}

func TestOneAnswer(t *testing.T) {
	tests.OneAnswer(t, 1, "--samples 1 --size 8x8x2 --iterations 2")
	tests.OneAnswer(t, 3, "--samples 1 --size 9x5x3 --iterations 4 --ranks 2")
}

func TestRejects(t *testing.T) {
	tests.Rejects(t, map[string]string{
		"--size 3x3":                     `--size must be NXxNYxNZ, thesis or full, got "3x3"`,
		"--size 3x3x3x3":                 "must be NXxNYxNZ",
		"--size 3x0x3":                   "1 to 1048576 points",
		"--size 1048576x1048576x1048576": "up to 68719476736 points",
	})
	if n, err := parseSize("thesis"); err != nil || n != (size{128, 320, 26}) {
		t.Errorf("the size of the thesis is %v, %v", n, err)
	}
}

// Seven device ranks fit on a multiprocessor: the size of the thesis has as many.
func TestCompiles(t *testing.T) { exampletest.Compile(t, source(128), 72, nil) }
