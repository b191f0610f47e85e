package stencil_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/halox/halox/stencil"
)

var grid = stencil.Coordinates{
	Spacing: [3]float64{0.1, 0.25, 1.0 / 3}, Shift: [3]float64{1, 0.5, 0}, Size: [3]int{9, 3, 3}, Time: 0.5,
}

// point holds the variables at one point; pointAt returns one of the grid.
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
		{"1e-3 + .5 + 16.", func(point) float64 { return 1e-3 + .5 + 16 }},
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
		{"atan2(x, +y)", func(p point) float64 { return math.Atan2(p.x, p.y) }},
		{"1/0", func(point) float64 { return math.Inf(1) }},
		{"sqrt(0 - x)", func(p point) float64 { return math.Sqrt(0 - p.x) }},
	} {
		t.Run(c.src, func(t *testing.T) { compare(t, c.src, c.want) })
	}
}

// compare checks every point of the grid and one layer around it, row by row and one by one.
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
					t.Fatalf("%s at (%d, %d, %d): got %v, want %v", src, i, j, k, got, want)
				}
				if one := alone.At(i, j, k); !same(one, got) {
					t.Fatalf("%s at (%d, %d, %d): got %v in a row and %v by itself", src, i, j, k, got, one)
				}
			}
		}
	}
}

// near allows for a compiler that fuses multiplications and additions in the formulas of this test.
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
			t.Fatalf("x of index %d: got %v, want %v", i, got, want)
		}
	}
}

func TestRowsOfChangingPositionAndLength(t *testing.T) {
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
				t.Fatalf("row of %d from %d at (%d, %d): [%d]: got %v, want %v", len(row), i0, j, k, n, got, want)
			}
		}
	}
}

func TestRowDoesNotAllocate(t *testing.T) {
	v := parse(t, "sin(pi*x)*sin(pi*y)*sin(pi*z) + (x < y ? i : z)").NewEvaluator(grid)
	row := make([]float64, 9)
	v.Row(row, 0, 0, 0)
	if n := testing.AllocsPerRun(100, func() { v.Row(row, 0, 1, 2) }); n != 0 {
		t.Errorf("allocations per row: got %v, want 0", n)
	}
}

// Random expressions, some with as few parentheses as the precedence of operators allows, match equivalent Go
// functions.
func TestRowAgainstFunctions(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		n := randomNumber(random, 6)
		compare(t, n.text, n.value)
	}
}

// formula is a random expression, the precedence of its outermost operator, and its value.
type formula struct {
	text    string
	binding int
	value   func(p point) float64 // 1 or 0 for a condition
}

// in returns the text as an operand of an operator of the given precedence.
func (f formula) in(binding int) string {
	if f.binding < binding {
		return "(" + f.text + ")"
	}
	return f.text
}

const (
	bindsChoice = iota
	bindsOr
	bindsAnd
	bindsNot
	bindsComparison
	bindsSum
	bindsProduct
	bindsSign
	bindsPower
	bindsOperand
)

func randomNumber(r *rand.Rand, depth int) formula {
	if depth == 0 || r.IntN(8) == 0 {
		all := []formula{
			{"x", bindsOperand, func(p point) float64 { return p.x }}, {"y", bindsOperand, func(p point) float64 { return p.y }},
			{"k", bindsOperand, func(p point) float64 { return p.k }}, {"t", bindsOperand, func(p point) float64 { return p.t }},
			{"nx", bindsOperand, func(p point) float64 { return p.nx }}, {"pi", bindsOperand, func(point) float64 { return math.Pi }},
			{".5", bindsOperand, func(point) float64 { return 0.5 }}, {"2", bindsOperand, func(point) float64 { return 2 }},
			{"25e-1", bindsOperand, func(point) float64 { return 2.5 }},
		}
		return all[r.IntN(len(all))]
	}
	a, b := randomNumber(r, depth-1), randomNumber(r, depth-1)
	two := func(symbol string, binding, right int, f func(a, b float64) float64) formula {
		return formula{a.in(binding) + symbol + b.in(right), binding, func(p point) float64 { return f(a.value(p), b.value(p)) }}
	}
	switch r.IntN(9) {
	case 0:
		return two("+", bindsSum, bindsProduct, func(a, b float64) float64 { return a + b })
	case 1:
		return two(" - ", bindsSum, bindsProduct, func(a, b float64) float64 { return a - b })
	case 2:
		return two("*", bindsProduct, bindsSign, func(a, b float64) float64 { return a * b })
	case 3:
		return two(" / ", bindsProduct, bindsSign, func(a, b float64) float64 { return a / b })
	case 4:
		return two(" % ", bindsProduct, bindsSign, math.Mod)
	case 5:
		power := formula{a.in(bindsOperand) + "^" + b.in(bindsSign), bindsPower, nil}
		power.value = func(p point) float64 { return math.Pow(a.value(p), b.value(p)) }
		return power
	case 6:
		return formula{"-" + a.in(bindsSign), bindsSign, func(p point) float64 { return -a.value(p) }}
	case 7:
		return formula{"atan2(" + a.text + ", " + b.text + ")", bindsOperand, func(p point) float64 { return math.Atan2(a.value(p), b.value(p)) }}
	}
	c := randomCondition(r, depth-1)
	value := func(p point) float64 { return choose(c.value(p) != 0, a.value(p), b.value(p)) }
	if r.IntN(2) == 0 {
		return formula{"if " + c.text + "{" + a.text + "} else {" + b.text + "}", bindsChoice, value}
	}
	return formula{c.in(bindsOr) + " ? " + a.text + " : " + b.text, bindsChoice, value}
}

func randomCondition(r *rand.Rand, depth int) formula {
	if depth > 0 {
		a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
		switch r.IntN(4) {
		case 0:
			return formula{a.in(bindsOr) + " or " + b.in(bindsAnd), bindsOr, func(p point) float64 { return max(a.value(p), b.value(p)) }}
		case 1:
			return formula{a.in(bindsAnd) + " && " + b.in(bindsNot), bindsAnd, func(p point) float64 { return min(a.value(p), b.value(p)) }}
		case 2:
			return formula{"not " + a.in(bindsNot), bindsNot, func(p point) float64 { return 1 - a.value(p) }}
		}
	}
	a, b, c := randomNumber(r, depth), randomNumber(r, depth), randomNumber(r, depth)
	return formula{a.in(bindsSum) + " < " + b.in(bindsSum) + " <= " + c.in(bindsSum), bindsComparison, func(p point) float64 {
		return choose(a.value(p) < b.value(p) && b.value(p) <= c.value(p), 1, 0)
	}}
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
	row := make([]float64, 4) // the points of an axis between two Dirichlet boundaries: 0.2, 0.4, 0.6, 0.8
	e.NewEvaluator(stencil.Coordinates{Spacing: [3]float64{0.2}, Shift: [3]float64{1}, Size: [3]int{4, 1, 1}}).Row(row, 0, 0, 0)
	fmt.Printf("%.3f\n", row)

	_, err = stencil.Parse("cos(pi*w)")
	fmt.Println(err)
	// Output:
	// [1.000 1.000 -0.309 -0.809]
	// column 8: unknown name "w": the variables are x, y, z, i, j, k, nx, ny, nz, t, pi
}
