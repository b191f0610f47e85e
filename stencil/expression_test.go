package stencil_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/stencil"
)

func TestParseErrors(t *testing.T) {
	deep := strings.Repeat("(", 5000)
	for _, c := range []struct{ name, src, want string }{
		{"nothing", "  ", "is empty: must be a number or a formula in x, y, z, i, j, k, nx, ny, nz, t, pi"},
		{"unknown variable", "sin(pi*q)", `column 8: unknown name "q": the variables are x, y, z, i, j, k, nx, ny, nz, t, pi`},
		{"unknown function", "x + sine(y)", `column 5: unknown function "sine", did you mean sin?`},
		{"unknown function with a known name inside", "len(x)", `column 1: unknown function "len": `},
		{"function without arguments", "sin + 1", "column 1: the function sin needs its arguments in parentheses"},
		{"too few arguments", "atan2(y)", "column 1: atan2 takes 2 arguments, not 1"},
		{"too many arguments", "sin(x, y)", "column 1: sin takes 1 argument, not 2"},
		{"too few to fold", "min(x)", "column 1: min takes 2 arguments or more, not 1"},
		{"string", `x + "one"`, `column 5: a text can only be the argument of file`},
		{"list", "[x, y]", `column 1: unexpected "[": a number, `},
		{"member", "x.y", `column 2: unexpected ".": an operator expected`},
		{"sequence", "x; y", `column 2: unexpected ";": an operator expected`},
		{"word as an operator", "x in y", `column 3: unexpected "in": an operator expected`},
		{"bar", "x | y", `column 3: unexpected "|": an operator expected`},
		{"comment to the end of the line", "i//4", `column 3: unexpected "/": a number, a name or a parenthesis expected (there are no comments and no integer division)`},
		{"comment", "i /* four */ + 1", `column 4: unexpected "*": a number, `},
		{"comment of another language", "i # four", `column 3: unexpected "#": an operator expected`},
		{"number before a name", "2x", `column 1: "2x" is not a decimal number: a product needs *, as in 2*x`},
		{"hexadecimal", "0x10", `column 1: "0x10" is not a decimal number`},
		{"underscore", "1_000", `column 1: "1_000" is not a decimal number`},
		{"two points", "1.2.3", `column 1: "1.2.3" is not a decimal number`},
		{"exponent without digits", "1e+", `column 1: "1e+" is not a decimal number`},
		{"infinite", "1e999", "column 1: the number 1e999 is too large for float64"},
		{"infinity by name", "inf", `column 1: unknown name "inf"`},
		{"assignment", "x = 1", `column 3: unexpected "=": an operator expected`},
		{"single &", "x < 1 & y < 1 ? 1 : 0", `column 7: unexpected "&": an operator expected`},
		{"argument missing", "atan2(x,)", `column 9: unexpected ")": an argument expected`},
		{"not of a number", "not x < 1 + not y", `column 13: unexpected "not": a number, a name or a parenthesis expected`},
		{"if without else", "if x < 1 { 2 }", `column 15: the expression ends too early: "else" expected`},
		{"nested if", "1 + if x < 1 { 2 } else { 3 }", `column 5: unexpected "if": a number, `},
		{"condition as result", "x < 1", "column 3: the result must be a number, not a condition: write c ? 1 : 0"},
		{"condition as operand", "(x < 1) * 2", "column 4: an operand of * must be a number, not a condition"},
		{"number as condition", "x ? 1 : 0", "column 1: the first operand of a choice must be a condition, not a number"},
		{"choices of two kinds", "x < 1 ? 1 : y < 2", "must be a number, not a condition"},
		{"short choice", "(x < 1 ?: y < 1) ? 1 : 0", `column 9: unexpected ":": a number, `},
		{"end too early", "x +", "column 4: the expression ends too early: a number, a name or a parenthesis expected"},
		{"quote", "1 + 'a", `column 5: the quote ' is not closed`},
		{"unknown function unlike others", "foobar(y)", `column 1: unknown function "foobar": the functions are abs, acos, `},
		{"a variable as a function", "2*x(1)", "column 3: x is not a function: a product needs *, as in x*(x)"},
		{"two numbers", "1 2", `column 3: unexpected "2": an operator expected`},
		{"open parenthesis", "1+(x", `column 3: the parenthesis is not closed: ")" expected at the end`},
		{"strange character", "x § y", `column 3: unexpected "§"`},
		{"control character", "x \x01 y", `column 3: unexpected "\x01"`},
		{"second line", "x +\n  q", `line 2, column 3: unknown name "q"`},
		{"not UTF-8", "x + \xff", "must be valid UTF-8"},
		{"too long", deep, "must have at most 4096 bytes, got 5000"},
		{"too many nodes", strings.Repeat("x+", 1500) + "x", "must have at most 1000 numbers, names and operators"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := stencil.Parse(c.src)
			var parse *stencil.ParseError
			if !errors.As(err, &parse) {
				t.Fatalf("Parse(%q): got %v", c.src, err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Parse(%q):\n got %s\nwant %s", c.src, err, c.want)
			}
		})
	}
}

func TestUsesAndString(t *testing.T) {
	const src = "0*t + sin(pi*x)"
	e := parse(t, src)
	for name, want := range map[string]bool{"t": true, "pi": true, "x": true, "y": false, "i": false, "": false, "sin": false} {
		if e.Uses(name) != want {
			t.Errorf("Uses(%q): got %v", name, !want)
		}
	}
	if e.String() != src {
		t.Errorf("String: got %q", e)
	}
}

func TestNestedChainsStaySmall(t *testing.T) {
	src := "x"
	for range 40 { // evaluated once per level, not 2^40 times
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
				t.Errorf("Parse(%q): message must be one line, got %v", src, err)
			}
			return
		}
		at := stencil.Coordinates{Spacing: [3]float64{.1, .2, .3}, Size: [3]int{4, 5, 6}, Time: 1}
		v := e.NewEvaluator(at)
		row := make([]float64, 4)
		v.Row(row, 0, 1, 2)
		for n, got := range row {
			if want := e.NewEvaluator(at).At(n, 1, 2); !same(got, want) {
				t.Errorf("%q at %d: %v in a row, %v by itself", src, n, got, want)
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

// same reports whether two values have the same bits; all NaNs are equal.
func same(a, b float64) bool { return a == b || a != a && b != b }

func TestVaries(t *testing.T) {
	for src, want := range map[string]bool{
		"x": true, "y": true, "z": true, "i": true, "j": true, "k": true, "t + sin(j)": true, "t > 1 ? k : 2": true,
		"3": false, "pi*t": false, "nx + ny + nz": false, "exp(-t)*cos(pi)": false,
	} {
		if e := parse(t, src); e.Varies() != want {
			t.Errorf("Varies(%q): got %v", src, !want)
		}
	}
}

// The reference page names all variables, functions and operators.
func TestPageIsComplete(t *testing.T) {
	page := test.Must(os.ReadFile("../docs/reference/expressions.md"))(t)
	for _, name := range stencil.Words() {
		if !regexp.MustCompile("`[^`\n]*"+regexp.QuoteMeta(name)+"[^`\n]*`").Match(page) && name != "||" {
			t.Errorf("docs/reference/expressions.md: must name %s", name)
		}
	}
}
