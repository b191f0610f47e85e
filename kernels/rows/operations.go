package rows

import "math"

// An operation sets a row to what an operation of formulas gives of up to three rows, of which those beyond its
// operands may have any length. The others are as long as dst, or longer. Conditions are 1 where they hold, else 0. dst
// may be one of the operands.
type operation[T Float] func(dst, a, b, c []T)

// operationOf returns the operation that a stencil.Node names, with so many operands, or one of a Program: a copy, or a
// sum with a product; nil of an unknown one. Each value is rounded to T. Operations of arithmetic, sqrt, comparisons,
// min and max have the bits of CUDA; min and max are NaN where an operand is, and of two equal ones the second.
func operationOf[T Float](name string, operands int) operation[T] {
	switch {
	case name == "-" && operands == 1:
		return each1(func(a T) T { return -a })
	case operands == 1 && functions[name] != nil:
		f := functions[name]
		return each1(func(a T) T { return T(f(float64(a))) })
	}
	switch name {
	case "=":
		return func(dst, a, _, _ []T) { copy(dst, a) }
	case "a+b*c":
		return func(dst, a, b, c []T) {
			a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
			for i := range dst {
				dst[i] = a[i] + T(b[i]*c[i])
			}
		}
	case "a-b*c":
		return func(dst, a, b, c []T) {
			a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
			for i := range dst {
				dst[i] = a[i] - T(b[i]*c[i])
			}
		}
	case "b*c-a":
		return func(dst, a, b, c []T) {
			a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
			for i := range dst {
				dst[i] = T(b[i]*c[i]) - a[i]
			}
		}
	case "+":
		return func(dst, a, b, _ []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] + b[i]
			}
		}
	case "-":
		return func(dst, a, b, _ []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] - b[i]
			}
		}
	case "*", "and":
		return func(dst, a, b, _ []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] * b[i]
			}
		}
	case "/":
		return func(dst, a, b, _ []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] / b[i]
			}
		}
	case "? :":
		return func(dst, a, b, c []T) {
			a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
			for i := range dst {
				if v := c[i]; a[i] == 0 {
					dst[i] = v
				} else {
					dst[i] = b[i]
				}
			}
		}
	case "not":
		return each1(func(a T) T { return 1 - a })
	case "sign":
		return each1(func(a T) T {
			if a > 0 {
				return 1
			} else if a < 0 {
				return -1
			}
			return a
		})
	case "or", "max":
		return each2(func(a, b T) T {
			if a > b || a != a {
				return a
			}
			return b
		})
	case "min":
		return each2(func(a, b T) T {
			if a < b || a != a {
				return a
			}
			return b
		})
	case "<":
		return holds(func(a, b T) bool { return a < b })
	case "<=":
		return holds(func(a, b T) bool { return a <= b })
	case ">":
		return holds(func(a, b T) bool { return a > b })
	case ">=":
		return holds(func(a, b T) bool { return a >= b })
	case "==":
		return holds(func(a, b T) bool { return a == b })
	case "!=":
		return holds(func(a, b T) bool { return a != b })
	}
	f, ok := map[string]func(a, b float64) float64{
		"mod": math.Mod, "pow": math.Pow, "atan2": math.Atan2, "hypot": math.Hypot,
	}[name]
	if !ok || operands != 2 {
		return nil
	}
	return each2(func(a, b T) T { return T(f(float64(a), float64(b))) })
}

// functions are those of one operand.
var functions = map[string]func(float64) float64{
	"abs": math.Abs, "sqrt": math.Sqrt, "cbrt": math.Cbrt, "exp": math.Exp, "log": math.Log, "log2": math.Log2,
	"log10": math.Log10, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos,
	"atan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "floor": math.Floor,
	"ceil": math.Ceil, "round": math.Round,
}

func each1[T Float](f func(a T) T) operation[T] {
	return func(dst, a, _, _ []T) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i])
		}
	}
}

func each2[T Float](f func(a, b T) T) operation[T] {
	return func(dst, a, b, _ []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
}

func holds[T Float](f func(a, b T) bool) operation[T] {
	return each2(func(a, b T) T {
		if f(a, b) {
			return 1
		}
		return 0
	})
}
