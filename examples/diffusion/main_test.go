package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers/scheme"
)

func TestMain(m *testing.M) { exampletest.Main(m, "diffusion.cu") }

// options are those of so many ranks a device.
func options(ranks, threads int) compare.Options {
	return compare.Options{Ranks: ranks, Threads: threads, Limit: 20 * time.Second}
}

// checked runs from the first values and compares what comes out with what is wanted.
func checked(ctx context.Context, m stepper, run compare.Method, first, want grid, steps int) error {
	if err := m.load(first); err != nil {
		return err
	}
	if _, err := run(ctx, steps); err != nil {
		return err
	}
	got, err := m.read()
	if i := differ(got, want); err == nil && i >= 0 {
		err = fmt.Errorf("point %d differs: %w", i, errDiffers)
	}
	return err
}

// differ returns a point at which two grids are not the same, bit for bit, or -1.
func differ(a, b grid) int {
	for i, v := range a.values {
		if math.Float64bits(v) != math.Float64bits(b.values[i]) {
			return i
		}
	}
	return -1
}

// Ranks give the bits of the reference on any number of devices, however many share the levels and rows; a second run
// goes on where the first has ended.
func TestRanks(t *testing.T) {
	const steps = 3 // odd: the second run begins with the other field
	for _, c := range []struct {
		problem problem
		ranks   []int
	}{
		{problem{7, 5, 3}, []int{1, 2, 3, 6, 15, 16}},
		{problem{1, 1, 1}, []int{1, 2}},
		{problem{2, 1, 2}, []int{1, 2, 3}},
		{problem{70, 4, 2}, []int{3, 8}}, // rows longer than a block has threads
		{problem{16, 9, 4}, []int{4, 7}},
	} {
		for _, ranks := range c.ranks {
			t.Run(fmt.Sprintf("%v/ranks=%d", c.problem, ranks), func(t *testing.T) {
				exampletest.EachSession(t, 4, func(t *testing.T, s *halo.Session) {
					p := c.problem
					first := start(p.nx, p.ny*len(s.Devices), p.nz)
					half, whole := reference(first, steps), reference(first, 2*steps)
					r, err := newByRanks(s, p, options(ranks, 64))
					if err != nil {
						t.Fatal(err)
					}
					if err := checked(t.Context(), r, r.method(), first, half, steps); err != nil {
						t.Error(err)
					}
					if _, err := r.method()(t.Context(), steps); err != nil {
						t.Fatal(err)
					}
					if got, err := r.read(); err != nil || differ(got, whole) >= 0 {
						t.Errorf("after a second run: %v, or point %d differs", err, differ(got, whole))
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// So does halox under every scheme.
func TestStreams(t *testing.T) {
	const steps = 3
	p := problem{13, 6, 3}
	exampletest.EachSession(t, 3, func(t *testing.T, s *halo.Session) {
		names := scheme.All()
		if s.Devices[0].Backend != "host" {
			names = []scheme.Scheme{scheme.TwoStream, scheme.Graph, scheme.Fused}
		}
		for _, name := range names {
			t.Run(string(name), func(t *testing.T) {
				first := start(p.nx, p.ny*len(s.Devices), p.nz)
				want := reference(first, steps)
				b, err := newByStreams(t.Context(), s, p, scheme.Options{Scheme: name, Limit: 20 * time.Second, Steps: steps})
				if name == scheme.Ranks || name == scheme.Blocked { // which have none of several stages
					if !errors.Is(err, scheme.ErrUnsuited) {
						t.Fatal(err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := checked(t.Context(), b, b.run, first, want, steps); err != nil {
					t.Error(err)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// What diffusion keeps: a constant; a linear field, far from where its ends meet; the sum of each level. Roughness
// becomes less.
func TestReference(t *testing.T) {
	const nx, ny, nz = 16, 15, 2
	flat := filled(nx, ny, nz, func(_, _, z int) float64 { return 3 + float64(z) })
	if i := differ(reference(flat, 2), flat); i >= 0 {
		t.Errorf("a constant changes at point %d", i)
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
	smooth := reference(rough, 10)
	sum := func(g grid) (v, squares float64) {
		for _, u := range g.values {
			v += u
			squares += u * u
		}
		return v, squares
	}
	before, squaresBefore := sum(rough)
	later, squaresLater := sum(smooth)
	if math.Abs(later/before-1) > 1e-13 {
		t.Errorf("the sum %v becomes %v", before, later)
	}
	if squaresLater >= squaresBefore*(1-1e-5) {
		t.Errorf("the sum of squares %v becomes %v", squaresBefore, squaresLater)
	}
}

// The reference tells values that are wrong, and says where.
func TestCheck(t *testing.T) {
	s := testdevices.Host(t, 1)
	p := newProgram()
	o, err := p.Parse(strings.Fields("--size 4x3x2"), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.New(t.Context(), &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := x.Method(compare.Ranks); err != nil {
		t.Fatal(err)
	}
	if err := x.Reset(); err != nil {
		t.Fatal(err)
	}
	values, err := x.Values(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Check(t.Context(), values, 0); err != nil {
		t.Error(err)
	}
	if _, err := x.Check(t.Context(), values, 1); !errors.Is(err, errDiffers) {
		t.Errorf("the values of another step: %v", err)
	}
	values[1+4*2+12] += 1e-14
	if _, err := x.Check(t.Context(), values, 0); !errors.Is(err, errDiffers) || !strings.Contains(err.Error(), "at 1, 2, 1 after 0 steps") {
		t.Errorf("a wrong value: %v", err)
	}
}

// Ranks share levels and rows so that the largest share is as small as can be.
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
		if p.Chunks*p.Slabs > c.ranks || p.Chunks > c.nz || p.Slabs > c.ny || most(p.Chunks, p.Slabs) > most(c.chunks, c.slabs) {
			t.Errorf("%d ranks share %d levels and %d rows as %d x %d", c.ranks, c.nz, c.ny, p.Chunks, p.Slabs)
		}
	}
}

// Ranks, schemes and graphs give the same bits on each backend, which are those of the reference.
func TestOneAnswer(t *testing.T) {
	sums := exampletest.Sums{}
	for _, c := range []struct {
		devices int
		flags   string
	}{
		{1, "--size 8x8x2 --iterations 2"},
		{3, "--size 9x5x3 --iterations 4 --ranks 2"},
		{2, "--size 8x8x2 --iterations 3 --per-multiprocessor 1 --threads 64 --scheme assisted --path peer"},
		{2, "--size 6x5x3 --iterations 3 --ranks 6 --pauses"},
	} {
		t.Run(fmt.Sprintf("devices=%d/%s", c.devices, strings.ReplaceAll(c.flags, " ", "_")), func(t *testing.T) {
			exampletest.Compare(t, newProgram, sums, c.devices, "--samples 2 "+c.flags)
		})
	}
}

func TestRefusals(t *testing.T) {
	exampletest.Refused(t, newProgram, map[string]string{
		"--size 3x3":                     "--size 3x3: three numbers of points",
		"--size 3x3x3x3":                 "three numbers of points",
		"--size 3x0x3":                   "1 to 1048576 points",
		"--size 1048576x1048576x1048576": "up to 68719476736 points are possible",
		"--size small":                   "or thesis or full",
		"--scheme guess --devices 2 --method streams": "guess",
		"--path guess --devices 2 --method graph":     "guess",
		"--threads 2000": "--threads 2000: want 32 to 512",
	})
	exampletest.Stopped(t, newProgram, "--size 8x8x2")
	if p, err := parseSize("thesis"); err != nil || p != (problem{128, 320, 26}) {
		t.Errorf("the size of the thesis is %v, %v", p, err)
	}
}

// The kernel compiles for every generation of GPUs, without spills, and seven ranks fit on a multiprocessor: the size of the thesis has as many.
func TestSource(t *testing.T) { exampletest.Compile(t, rankSource(128), 72, nil) }
