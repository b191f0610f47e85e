package stencil_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/expr-lang/expr"

	"github.com/halox/halox/stencil"
)

var grid = stencil.Coordinates{
	Spacing: [3]float64{0.1, 0.25, 1.0 / 3}, Shift: [3]float64{1, 0.5, 0}, Size: [3]int{9, 3, 3}, Time: 0.5,
}

// point is what an expression sees at one place; sample is one in the grid.
type point struct{ x, y, z, i, j, k, nx, ny, nz, t float64 }

func pointAt(i, j, k int) point {
	return point{
		float64(i+1) * 0.1, (float64(j) + 0.5) * 0.25, float64(k) * (1.0 / 3),
		float64(i), float64(j), float64(k), 9, 3, 3, 0.5,
	}
}

func choose(c bool, a, b float64) float64 {
	if c {
		return a
	}
	return b
}

func TestRowAgainstMath(t *testing.T) {
	for _, c := range []struct {
		src  string
		want func(p point) float64
	}{
		{"1/2", func(point) float64 { return 0.5 }},
		{"-3", func(point) float64 { return -3 }},
		{"1e-3 + .5 + 0x10", func(point) float64 { return 1e-3 + .5 + 16 }},
		{"x", func(p point) float64 { return p.x }},
		{"y - z", func(p point) float64 { return p.y - p.z }},
		{"i + 10*j + 100*k", func(p point) float64 { return p.i + 10*p.j + 100*p.k }},
		{"nx + ny*10 + nz*100 + t", func(p point) float64 { return p.nx + p.ny*10 + p.nz*100 + p.t }},
		{"-x^2", func(p point) float64 { return -(p.x * p.x) }},
		{"2^3^2", func(point) float64 { return 512 }},
		{"x**3", func(p point) float64 { return math.Pow(p.x, 3) }},
		{"(i - 4) % 3", func(p point) float64 { return math.Mod(p.i-4, 3) }},
		{"mod(i, 3) / y", func(p point) float64 { return math.Mod(p.i, 3) / p.y }},
		{"sin(pi*x)*cos(pi*y)+tan(z)", func(p point) float64 { return math.Sin(math.Pi*p.x)*math.Cos(math.Pi*p.y) + math.Tan(p.z) }},
		{"asin(x)+acos(x)+atan(y)", func(p point) float64 { return math.Asin(p.x) + math.Acos(p.x) + math.Atan(p.y) }},
		{"sinh(x)-cosh(y)-tanh(z)", func(p point) float64 { return math.Sinh(p.x) - math.Cosh(p.y) - math.Tanh(p.z) }},
		{"exp(x)/log(y+1)", func(p point) float64 { return math.Exp(p.x) / math.Log(p.y+1) }},
		{"log2(x)*log10(y)", func(p point) float64 { return math.Log2(p.x) * math.Log10(p.y) }},
		{"sqrt(x)+cbrt(y)", func(p point) float64 { return math.Sqrt(p.x) + math.Cbrt(p.y) }},
		{"abs(x-0.5)", func(p point) float64 { return math.Abs(p.x - 0.5) }},
		{"floor(i/2)+ceil(i/2)*10+round(i/2)*100", func(p point) float64 {
			return math.Floor(p.i/2) + math.Ceil(p.i/2)*10 + math.Round(p.i/2)*100
		}},
		{"atan2(y, x) + hypot(x, z)", func(p point) float64 { return math.Atan2(p.y, p.x) + math.Hypot(p.x, p.z) }},
		{"pow(x, y)", func(p point) float64 { return math.Pow(p.x, p.y) }},
		{"min(x, y, z) - max(z, y, x, 0.3)", func(p point) float64 { return min(p.x, p.y, p.z) - max(p.x, p.y, p.z, 0.3) }},
		{"sign(i - 2)", func(p point) float64 { return choose(p.i < 2, -1, choose(p.i > 2, 1, 0)) }},
		{"x < 0.5 ? x : y", func(p point) float64 { return choose(p.x < 0.5, p.x, p.y) }},
		{"if i == 0 or k != 1 { 1 } else if j >= 2 { 2 } else { 3 }", func(p point) float64 {
			return choose(p.i == 0 || p.k != 1, 1, choose(p.j >= 2, 2, 3))
		}},
		{"not (x <= 0.5) && !(y > 0.5) ? 1 : 0", func(p point) float64 { return choose(p.x > 0.5 && p.y <= 0.5, 1, 0) }},
		{"0.2 < x < 0.8 || false ? 1 : 0", func(p point) float64 { return choose(0.2 < p.x && p.x < 0.8, 1, 0) }},
		{"(x < y ? y < z : true) ? 1 : 0", func(p point) float64 { return choose(p.x >= p.y || p.y < p.z, 1, 0) }},
		{"x | atan2(+y)", func(p point) float64 { return math.Atan2(p.x, p.y) }},
		{"1/0", func(point) float64 { return math.Inf(1) }},
		{"sqrt(0 - x)", func(p point) float64 { return math.Sqrt(0 - p.x) }},
	} {
		t.Run(c.src, func(t *testing.T) { compare(t, c.src, c.want) })
	}
}

// compare checks every point of the grid and of its walls, row by row and alone.
func compare(t *testing.T, src string, want func(point) float64) {
	t.Helper()
	v := parse(t, src).NewEvaluator(grid)
	alone := parse(t, src).NewEvaluator(grid)
	row := make([]float64, grid.Size[0]+2)
	for k := -1; k <= grid.Size[2]; k++ {
		for j := -1; j <= grid.Size[1]; j++ {
			v.Row(row, -1, j, k)
			for n, got := range row {
				i := n - 1
				if want := want(pointAt(i, j, k)); !near(got, want) {
					t.Fatalf("%s at (%d, %d, %d) is %v, not %v", src, i, j, k, got, want)
				}
				if one := alone.At(i, j, k); !same(one, got) {
					t.Fatalf("%s at (%d, %d, %d) is %v in a row and %v alone", src, i, j, k, got, one)
				}
			}
		}
	}
}

// near allows what a compiler that fuses multiplications and additions may change in the test's own formulas.
func near(a, b float64) bool {
	return same(a, b) || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b), 1)
}

func TestCoordinatesAreExact(t *testing.T) {
	const n = 1000
	h := 1.0 / (n + 1)
	v := parse(t, "x").NewEvaluator(stencil.Coordinates{Spacing: [3]float64{h, h, h}, Shift: [3]float64{1, 1, 1}})
	row := make([]float64, n)
	v.Row(row, 0, 0, 0)
	for i, got := range row {
		if want := float64(i+1) * h; got != want {
			t.Fatalf("x of index %d is %v, not %v", i, got, want)
		}
	}
}

func TestRowsOfChangingPlaceAndLength(t *testing.T) {
	const src = "sin(pi*x) + y*cos(i) - z + nx"
	v := parse(t, src).NewEvaluator(grid)
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		row := make([]float64, random.IntN(5))
		i0, j, k := random.IntN(5)-1, random.IntN(3), random.IntN(3)
		v.Row(row, i0, j, k)
		for n, got := range row {
			p := pointAt(i0+n, j, k)
			if want := math.Sin(math.Pi*p.x) + p.y*math.Cos(p.i) - p.z + p.nx; !near(got, want) {
				t.Fatalf("row of %d from %d at (%d, %d): [%d] is %v, not %v", len(row), i0, j, k, n, got, want)
			}
		}
	}
}

func TestRowAllocatesNothing(t *testing.T) {
	v := parse(t, "sin(pi*x)*sin(pi*y)*sin(pi*z) + (x < y ? i : z)").NewEvaluator(grid)
	row := make([]float64, 9)
	v.Row(row, 0, 0, 0)
	if n := testing.AllocsPerRun(100, func() { v.Row(row, 0, 1, 2) }); n != 0 {
		t.Errorf("a row allocates %v times", n)
	}
}

// TestRowAgainstLibrary compares random expressions with the virtual machine of the library that parses them.
func TestRowAgainstLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		src := randomNumber(random, 5)
		machine, err := expr.Compile(src, expr.Env(environment(point{})), expr.AsFloat64())
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		compare(t, src, func(p point) float64 {
			out, err := expr.Run(machine, environment(p))
			if err != nil {
				t.Fatalf("%s: %v", src, err)
			}
			return out.(float64)
		})
	}
}

func environment(p point) map[string]any {
	return map[string]any{
		"x": p.x, "y": p.y, "z": p.z, "i": p.i, "j": p.j, "k": p.k, "nx": p.nx, "t": p.t, "pi": math.Pi,
		"sin": math.Sin, "exp": math.Exp, "sqrt": math.Sqrt, "floor": math.Floor, "atan2": math.Atan2,
	}
}

func randomNumber(r *rand.Rand, depth int) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	below := func() string { return randomNumber(r, depth-1) }
	if depth == 0 || r.IntN(8) == 0 {
		return pick("x", "y", "z", "i", "j", "k", "nx", "t", "pi", "0.5", "2.0", "7.25")
	}
	switch r.IntN(5) {
	case 0:
		return pick("sin", "exp", "sqrt", "floor") + "(" + below() + ")"
	case 1:
		return "atan2(" + below() + ", " + below() + ")"
	case 2:
		return "(" + randomCondition(r, depth-1) + " ? " + below() + " : " + below() + ")"
	case 3:
		return "-" + below()
	}
	return "(" + below() + " " + pick("+", "-", "*", "/") + " " + below() + ")"
}

func randomCondition(r *rand.Rand, depth int) string {
	c := randomNumber(r, depth) + " " + [...]string{"<", "<=", ">", ">="}[r.IntN(4)] + " " + randomNumber(r, depth)
	switch {
	case depth > 1 && r.IntN(3) == 0:
		return c + " " + [...]string{"and", "or"}[r.IntN(2)] + " " + randomCondition(r, depth-1)
	case r.IntN(4) == 0:
		return "not (" + c + ")"
	}
	return c
}

func BenchmarkRow(b *testing.B) {
	for _, src := range []string{
		"1", "x*y*z", "sin(pi*x)*sin(pi*y)*sin(pi*z)", "exp(-3*pi^2*t)*sin(pi*x)*sin(pi*y)*sin(pi*z)",
		"hypot(x-0.5, y-0.5) < 0.2 ? 1 : 0", "sin(pi*x*y)",
	} {
		b.Run("expr="+strings.ReplaceAll(src, " ", ""), func(b *testing.B) {
			const n, rows = 256, 64
			c := stencil.Coordinates{Spacing: [3]float64{1. / n, 1. / n, 1. / n}, Size: [3]int{n, n, n}}
			v := parse(b, src).NewEvaluator(c)
			dst := make([]float64, n)
			for b.Loop() {
				for j := range rows {
					v.Row(dst, 0, j, 3)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*rows), "ns/point")
		})
	}
}

func ExampleParse() {
	e, err := stencil.Parse("x < 0.5 ? 1 : cos(pi*x)")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := make([]float64, 4) // the points of an axis between two walls: 0.2, 0.4, 0.6, 0.8
	e.NewEvaluator(stencil.Coordinates{Spacing: [3]float64{0.2}, Shift: [3]float64{1}, Size: [3]int{4, 1, 1}}).Row(row, 0, 0, 0)
	fmt.Printf("%.3f\n", row)

	_, err = stencil.Parse("cos(pi*w)")
	fmt.Println(err)
	// Output:
	// [1.000 1.000 -0.309 -0.809]
	// column 8: unknown name "w": the variables are x, y, z, i, j, k, nx, ny, nz, t, pi
}
