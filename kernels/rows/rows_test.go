package rows

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels/sums"
)

func TestShortSlicesAreNamed(t *testing.T) {
	long, short := make([]float64, 10), make([]float64, 7)
	dst := make([]float64, 8)
	b := Band{Points: 3, Count: 2, Pitch: 5}
	type refusal struct {
		want string
		call func()
	}
	tests := []refusal{
		{"rows.Star5: pitch must be at least the 3 points of a row, got 2", func() { Star5(dst, long, long, long, Band{3, 2, 2}, 1, 1) }},
		{"rows.AddRow: old: must have at least 8 points, got 7", func() { AddRow(new(Norms), dst, short, sums.Reproducible) }},
	}
	for _, s := range stencils[float64]() {
		names := []string{"dst", "center", "south", "north", "below", "above"}
		if strings.HasPrefix(s.name, "Star5") {
			names = names[:4]
		}
		for i, name := range names {
			all, needs := [][]float64{dst, long, long, long, long, long}, 8
			if all[i] = short; name == "center" {
				needs = 10
			}
			tests = append(tests, refusal{fmt.Sprintf("rows.%s: %s: must have at least %d points, got 7", s.name, name, needs), func() {
				s.call(all[0], inputs[float64]{all[1], all[2], all[3], all[4], all[5]}, b, [4]float64{1, 1, 1, 1})
			}})
		}
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			defer func() {
				if got := recover(); got != test.want {
					t.Errorf("panic: got %v", got)
				}
			}()
			test.call()
		})
	}
}

func TestLoopsDoNotAllocate(t *testing.T) {
	dst, in := make([]float32, 100), make([]float32, 102)
	b := Band{Points: 20, Count: 5, Pitch: 20}
	var n, fast Norms
	allocs := testing.AllocsPerRun(10, func() {
		Star5(dst, in, in, in, b, 1, 1)
		Star7(dst, in, in, in, in, in, b, 1, 1)
		Star5Axes(dst, in, in, in, b, 1, 1, 1)
		Star7Axes(dst, in, in, in, in, in, b, 1, 1, 1, 1)
		AddRow(&n, dst, in, sums.Reproducible)
		AddRow(&fast, dst, in, sums.Fast)
	})
	if allocs != 0 {
		t.Errorf("got %v allocations per run", allocs)
	}
}

// The assembly of this package and of package sums is the output of their generators. The arguments must be those
// of the go:generate lines: each file contains them in its first line.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: builds the generators")
	}
	for _, pkg := range []string{"rows", "sums"} {
		folder, home := t.TempDir(), filepath.Join("..", pkg)
		generator := filepath.Join(folder, "generator.exe")
		if out, err := exec.Command("go", "build", "-o", generator, "../"+pkg+"/gen").CombinedOutput(); err != nil {
			t.Fatalf("building the generator: %v\n%s", err, out)
		}
		files := []string{pkg + "_amd64.s", pkg + "_amd64.go"}
		generate := exec.Command(generator, "-pkg", pkg, "-out", files[0], "-stubs", files[1])
		generate.Dir = folder
		if out, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("generating: %v\n%s", err, out)
		}
		for _, name := range files {
			want := test.Must(os.ReadFile(filepath.Join(folder, name)))(t)
			got := test.Must(os.ReadFile(filepath.Join(home, name)))(t)
			if !bytes.Equal(got, want) {
				t.Errorf("%s must be the output of %s/gen: run go generate", name, pkg)
			}
		}
	}
}

// canary is a value that no test computes. It fills memory that must not change.
const canary = -12345.678

// edges are special floating-point values.
func edges[T Float]() []T {
	smallest, largest := math.SmallestNonzeroFloat64, math.MaxFloat64
	if unsafe.Sizeof(T(0)) == 4 {
		smallest, largest = math.SmallestNonzeroFloat32, math.MaxFloat32
	}
	return []T{
		0, T(math.Copysign(0, -1)), T(smallest), T(-smallest), T(12345 * smallest),
		T(largest), T(-largest), T(math.Inf(1)), T(math.Inf(-1)), T(math.NaN()),
	}
}

// random returns n points at the given offset in an allocation, to cover all alignments. About one point in odd is
// one of edges; none if odd is 0.
func random[T Float](r *rand.Rand, n, offset, odd int) []T {
	special := edges[T]()
	row := make([]T, offset+n)[offset:]
	for i := range row {
		row[i] = T(r.NormFloat64() * math.Pow(2, float64(r.IntN(20)-10)))
		if odd > 0 && r.IntN(odd) == 0 {
			row[i] = special[r.IntN(len(special))]
		}
	}
	return row
}

// blank returns n canaries.
func blank[T Float](n int) []T {
	row := make([]T, n)
	for i := range row {
		row[i] = canary
	}
	return row
}

// fenced returns n points between canaries, and a check that the canaries are unchanged.
func fenced[T Float](n, offset int) (row []T, check func(*testing.T)) {
	const margin = 40
	whole := blank[T](margin + offset + n + margin)
	first := margin + offset
	return whole[first : first+n : first+n], func(t *testing.T) {
		t.Helper()
		for i, v := range whole {
			if (i < first || i >= first+n) && v != canary {
				t.Errorf("point %d of %d must not change, got %v", i-first, n, v)
			}
		}
	}
}

// same reports whether two numbers have the same bits or are both NaN.
func same[T Float](a, b T) bool {
	if a != a || b != b {
		return a != a && b != b
	}
	return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b))
}

// variants returns the loops to test: those in Go, and those in assembly if this processor supports them.
func variants() []bool {
	if assembly {
		return []bool{false, true}
	}
	return []bool{false}
}

// Apply matches its definition bitwise, point by point, and changes only its rows.
func TestApply(t *testing.T) {
	t.Run("float64", testApply[float64])
	t.Run("float32", testApply[float32])
}

func testApply[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := Sum[T]{Center: 0.3, Groups: []Group[T]{{0.1, [][]int{{-1, 1, -40}, {40}}}, {-0.7, [][]int{{41}}}, {0.01, [][]int{{-41}, {39, 2, 7}, {-42, 40}}}}}
	for _, points := range []int{1, 2, 7, 255, 256, 257, 600} {
		b := Band{Points: points, Count: 3, Pitch: points + 5}
		src := random[T](r, 3*b.Pitch+200, 1, 0)
		dst, intact := fenced[T](2*b.Pitch+points, 3)
		Apply(dst, src, 100, b, s)
		for i := range dst {
			if i%b.Pitch >= points {
				if dst[i] != canary {
					t.Fatalf("%d points: element %d between rows must not change", points, i)
				}
				continue
			}
			want := T(s.Center * src[100+i])
			for _, g := range s.Groups {
				var sum T
				for k, part := range g.Parts {
					one := src[100+i+part[0]]
					for _, o := range part[1:] {
						one += src[100+i+o]
					}
					if k == 0 {
						sum = one
					} else {
						sum += one
					}
				}
				want += T(g.Weight * sum)
			}
			if dst[i] != want {
				t.Fatalf("%d points: point %d: got %v, want %v", points, i, dst[i], want)
			}
		}
		intact(t)
	}
}

// Invalid arguments panic with the name of the argument.
func TestApplyPanics(t *testing.T) {
	s := Sum[float64]{Center: 1, Groups: []Group[float64]{{1, [][]int{{-2, 2}}}}}
	for says, f := range map[string]func(){
		"rows.Apply: dst: must have at least 4 points, got 3":   func() { Apply(make([]float64, 3), make([]float64, 20), 5, Band{4, 1, 4}, s) },
		"rows.Apply: src: must have at least 11 points, got 10": func() { Apply(make([]float64, 4), make([]float64, 10), 5, Band{4, 1, 4}, s) },
		"rows.Apply: src: must begin 1 points earlier":          func() { Apply(make([]float64, 4), make([]float64, 20), 1, Band{4, 1, 4}, s) },
		"rows.Apply: group of weight 2: must have points": func() {
			Apply(make([]float64, 4), make([]float64, 20), 5, Band{4, 1, 4}, Sum[float64]{1, []Group[float64]{{Weight: 2}}})
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, says) {
					t.Errorf("got %q, want %q", got, says)
				}
			}()
			f()
		}()
	}
}
