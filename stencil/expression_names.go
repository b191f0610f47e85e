package stencil

import (
	"maps"
	"math"
	"slices"
)

// A variation says with which coordinates a value changes. It decides how often a value is computed.
type variation uint8

const (
	alongX  variation = 1 << iota // with x: a row of values
	acrossX                       // with y or z: one value a row
	fixed   variation = 0         // with neither: one value for ever
)

// A variable is a name that stands for a value of the point, the grid or the moment.
type variable struct {
	name   string
	varies variation
}

// variables is in the order in which messages list them.
var variables = []variable{
	{"x", alongX}, {"y", acrossX}, {"z", acrossX},
	{"i", alongX}, {"j", acrossX}, {"k", acrossX},
	{"nx", fixed}, {"ny", fixed}, {"nz", fixed},
	{"t", fixed}, {"pi", fixed},
}

// variableNames returns the names that an expression may use.
func variableNames() []string {
	names := make([]string, len(variables))
	for n, v := range variables {
		names[n] = v.name
	}
	return names
}

// functionNames returns the functions that an expression may call, sorted.
func functionNames() []string { return slices.Sorted(maps.Keys(functions)) }

// functions are Go's math functions of the same name, but for: log is the natural one; mod has the sign of its first
// argument, as % does; pow is ^; round goes away from zero at halves; sign is -1, 0 or 1, or NaN for NaN; min and max
// take two arguments or more, and give NaN if one of them is.
var functions = map[string]*operation{
	"abs": unary("abs", math.Abs), "sign": unary("sign", sign),
	"sqrt": unary("sqrt", math.Sqrt), "cbrt": unary("cbrt", math.Cbrt),
	"exp": unary("exp", math.Exp), "log": unary("log", math.Log), "log2": unary("log2", math.Log2), "log10": unary("log10", math.Log10),
	"sin": unary("sin", math.Sin), "cos": unary("cos", math.Cos), "tan": unary("tan", math.Tan),
	"asin": unary("asin", math.Asin), "acos": unary("acos", math.Acos), "atan": unary("atan", math.Atan),
	"sinh": unary("sinh", math.Sinh), "cosh": unary("cosh", math.Cosh), "tanh": unary("tanh", math.Tanh),
	"floor": unary("floor", math.Floor), "ceil": unary("ceil", math.Ceil), "round": unary("round", math.Round),
	"atan2": binary("atan2", math.Atan2), "hypot": binary("hypot", math.Hypot),
	"mod": modulo, "pow": power,
	"min": least, "max": greatest,
}

// binaryOperators lists every spelling; what the library knows beyond them is refused.
var binaryOperators = map[string]*operation{
	"+": sum, "-": difference, "*": product, "/": quotient, "%": modulo, "^": power, "**": power,
	"<": comparison("<", func(a, b float64) bool { return a < b }), "<=": comparison("<=", func(a, b float64) bool { return a <= b }),
	">": comparison(">", func(a, b float64) bool { return a > b }), ">=": comparison(">=", func(a, b float64) bool { return a >= b }),
	"==": comparison("==", func(a, b float64) bool { return a == b }), "!=": comparison("!=", func(a, b float64) bool { return a != b }),
	"and": both, "&&": both, "or": either, "||": either,
}

// unaryOperators has no plus, which leaves no trace in a program.
var unaryOperators = map[string]*operation{"-": negation, "not": inversion, "!": inversion}
