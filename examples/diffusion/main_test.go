package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/examples/internal/versus"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/solvers/scheme"
)

func TestMain(m *testing.M) { exampletest.Main(m, "diffusion.cu") }

const limit = 20 * time.Second

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
					r, err := newByRanks(s, p, &versus.Options{Ranks: ranks, Threads: 64, Limit: limit})
					if err != nil {
						t.Fatal(err)
					}
					if err := checked(t.Context(), r, first, &half, steps); err != nil {
						t.Error(err)
					}
					if _, err := r.run(t.Context(), steps); err != nil {
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
				b, err := newByStreams(t.Context(), s, p, scheme.Options{Scheme: name, Limit: limit, Steps: steps})
				if name == scheme.Ranks { // which has none of several stages
					if !errors.Is(err, scheme.ErrUnsuited) {
						t.Fatal(err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := checked(t.Context(), b, first, &want, steps); err != nil {
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

// A run that does not give what is wanted is an error that says where.
func TestDiffers(t *testing.T) {
	exampletest.EachSession(t, 1, func(t *testing.T, s *halo.Session) {
		p := problem{4, 3, 2}
		first := start(p.nx, p.ny, p.nz)
		want := reference(first, 1)
		want.values[1+4*2+12] += 1e-15
		r, err := newByRanks(s, p, &versus.Options{Ranks: 2, Threads: 32, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if err := checked(t.Context(), r, first, &want, 1); !errors.Is(err, errDiffers) || !strings.Contains(err.Error(), "at 1, 2, 1 after 1 steps") {
			t.Errorf("error %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
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

// The program prints a table of both methods, and refuses flags that make no sense.
func TestProgram(t *testing.T) {
	cases := []struct{ args, want, fails string }{
		{"--backend host --devices 3 --steps 4 --repeats 2 --size 9x5x3", "both methods gave the bits of the serial reference", ""},
		{"--backend host --devices 2 --steps 2 --repeats 1 --size 8x8x2 --per-multiprocessor 1 --ranks 2 --csv", "method,devices,ranks a device,step [us],least,most,speedup\nranks,2,2,", ""},
		{"--backend host --devices 1 --steps 2 --repeats 1 --size 8x8x2 --verify=false --scheme graph", "streams under scheme graph", ""},
		{"-h", "-size", "help requested"},
		{"more", "", `"more" is no flag`},
		{"--size 3x3", "", "--size 3x3: three numbers of points"},
		{"--size 3x3x3x3", "", "three numbers of points"},
		{"--size 3x0x3", "", "1 to 1048576 points"},
		{"--scheme guess --backend host --devices 2", "", "guess"},
		{"--path guess --backend host --devices 2", "", "guess"},
		{"--threads 2000", "", "--threads 2000: a multiple of 32"},
		{"--backend abacus", "", "abacus"},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), strings.Fields(c.args), &out)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("printed %q, want %q", out.String(), c.want)
			}
		})
	}
}

// The kernel compiles for every generation of GPUs, without spills.
func TestSource(t *testing.T) { exampletest.Compile(t, rankSource(128)) }
