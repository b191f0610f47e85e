package stencil_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/stencil"
)

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("(", 5000)
	for _, c := range []struct{ name, src, want string }{
		{"nothing", "  ", "it is empty: a number or a formula in x, y, z, i, j, k, nx, ny, nz, t, pi"},
		{"unknown variable", "sin(pi*q)", `column 8: unknown name "q": the variables are x, y, z, i, j, k, nx, ny, nz, t, pi`},
		{"unknown function", "x + sine(y)", `column 5: unknown function "sine": the functions are abs, acos, `},
		{"function of the library", "len(x)", `column 1: unknown function "len": `},
		{"predicate of the library", "map(x, y)", `column 1: unknown function "map": `},
		{"function without arguments", "sin + 1", "column 1: the function sin needs its arguments in parentheses"},
		{"too few arguments", "atan2(y)", "column 1: atan2 takes 2 arguments, not 1"},
		{"too many arguments", "sin(x, y)", "column 1: sin takes 1 argument, not 2"},
		{"too few to fold", "min(x)", "column 1: min takes 2 arguments or more, not 1"},
		{"string", `x + "one"`, "column 5: a string is not allowed: "},
		{"list", "[x, y]", "column 1: a list is not allowed: "},
		{"nil", "nil", "column 1: nil is not allowed: "},
		{"member", "x.y", "column 3: a member or an index is not allowed: "},
		{"method", "x.sin()", "column 3: a method call is not allowed: "},
		{"let", "let a = x; a*a", "column 5: let is not allowed: "},
		{"sequence", "x; y", "a sequence with ; is not allowed: "},
		{"operator of the library", "x in y", "column 3: the operator in is not allowed: "},
		{"condition as result", "x < 1", "column 3: the result must be a number, not a condition: write c ? 1 : 0"},
		{"condition as operand", "(x < 1) * 2", "column 4: an operand of * must be a number, not a condition"},
		{"number as condition", "x ? 1 : 0", "column 1: what is before ? must be a condition, not a number"},
		{"choices of two kinds", "x < 1 ? 1 : y < 2", "must be a number, not a condition"},
		{"short choice", "(x < 1 ?: y < 1) ? 1 : 0", "a ?: b is not allowed"},
		{"end too early", "x +", "column 3: the expression ends too early"},
		{"two numbers", "1 2", "column 3: unexpected token Number"},
		{"open parenthesis", "(x", "the expression ends too early"},
		{"strange character", "x § y", "column 3: "},
		{"second line", "x +\n  q", `line 2, column 3: unknown name "q"`},
		{"not UTF-8", "x + \xff", "it is not valid UTF-8"},
		{"too long", deep, "it has 5000 bytes: at most 4096 are allowed"},
		{"too many nodes", strings.Repeat("x+", 1500) + "x", "exceeds maximum allowed nodes"},
		{"huge integer", "99999999999999999999", "invalid integer literal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := stencil.Parse(c.src)
			var parse *stencil.ParseError
			if !errors.As(err, &parse) {
				t.Fatalf("Parse(%q) gave %v", c.src, err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Parse(%q)\n says %s\nnot %s", c.src, err, c.want)
			}
		})
	}
}

func TestUsesAndString(t *testing.T) {
	const src = "0*t + sin(pi*x)"
	e := parse(t, src)
	for name, want := range map[string]bool{"t": true, "pi": true, "x": true, "y": false, "i": false, "": false, "sin": false} {
		if e.Uses(name) != want {
			t.Errorf("Uses(%q) is %v", name, !want)
		}
	}
	if e.String() != src {
		t.Errorf("String is %q", e)
	}
}

func TestNestedChainsStaySmall(t *testing.T) {
	src := "x"
	for range 40 { // a chain shares its middle: copied, these would be 2^40
		src = "(0 < " + src + " < 1 ? 1 : 0)"
	}
	if got := parse(t, src).NewEvaluator(stencil.Coordinates{}).At(0, 0, 0); got != 0 {
		t.Errorf("got %v", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range []string{
		"1", "-x^2", "sin(pi*x)*sin(pi*y)*sin(pi*z)", "x < 0.5 and not (y > z) ? 1 : 0", "if i == 0 { 1 } else { 2 }",
		"min(x, y, z) % 3", "x | pow(2)", "0 < x < 1 ? 1e3 : 0x10", "a?.b ?? c", "let a = 1; a", `"s" matches "t"`,
		"filter(x, # > 1)", "((((((", "x ?: y", "/* c */ 1", "map[1:2]", "..", "`raw`", "b'x'", "::len(1)", "1_0.5e3",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := stencil.Parse(src)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("Parse(%q) says more than one line: %v", src, err)
			}
			return
		}
		at := stencil.Coordinates{Spacing: [3]float64{.1, .2, .3}, Size: [3]int{4, 5, 6}, Time: 1}
		v := e.NewEvaluator(at)
		row := make([]float64, 4)
		v.Row(row, 0, 1, 2)
		for n, got := range row {
			if want := e.NewEvaluator(at).At(n, 1, 2); !same(got, want) {
				t.Errorf("%q at %d: %v in a row, %v alone", src, n, got, want)
			}
		}
	})
}

func parse(t testing.TB, src string) *stencil.Expression {
	t.Helper()
	e, err := stencil.Parse(src)
	if err != nil {
		t.Fatalf("Parse(%q): %v", src, err)
	}
	return e
}

// same reports whether two values have the same bits, all NaNs being one.
func same(a, b float64) bool { return a == b || a != a && b != b }

func TestVaries(t *testing.T) {
	for src, want := range map[string]bool{
		"x": true, "y": true, "z": true, "i": true, "j": true, "k": true, "t + sin(j)": true, "t > 1 ? k : 2": true,
		"3": false, "pi*t": false, "nx + ny + nz": false, "exp(-t)*cos(pi)": false,
	} {
		if e := parse(t, src); e.Varies() != want {
			t.Errorf("Varies of %q is %v", src, !want)
		}
	}
}
