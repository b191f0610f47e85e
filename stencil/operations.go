package stencil

import "math"

// A kind is the type of a value: a number, or a condition, which is true (1) or false (0).
type kind uint8

const (
	number kind = iota
	condition
)

func (k kind) String() string { return [...]string{"a number", "a condition"}[k] }

// An operation computes one row of values from up to three rows of the same length. Operations are compared by
// address.
type operation struct {
	name   string
	params []kind
	result kind
	apply  func(dst, a, b, c []float64) // operands beyond len(params) may have any length
	folds  bool                         // takes two or more arguments, left to right
}

var (
	sum        = &operation{name: "+", params: []kind{number, number}, apply: addRows}
	difference = &operation{name: "-", params: []kind{number, number}, apply: subtractRows}
	product    = &operation{name: "*", params: []kind{number, number}, apply: multiplyRows}
	quotient   = &operation{name: "/", params: []kind{number, number}, apply: divideRows}
	modulo     = binary("mod", math.Mod)
	power      = binary("pow", math.Pow)
	least      = folding("min", func(a, b float64) float64 { return min(a, b) })
	greatest   = folding("max", func(a, b float64) float64 { return max(a, b) })
	negation   = unary("-", func(a float64) float64 { return -a })
	inversion  = logical("not", 1, func(a, _ float64) float64 { return 1 - a })
	both       = logical("and", 2, func(a, b float64) float64 { return a * b })
	either     = logical("or", 2, func(a, b float64) float64 { return max(a, b) })
	choice     = &operation{name: "? :", params: []kind{condition, number, number}, apply: chooseRows}
)

// choiceOfConditions is the choice between two conditions.
var choiceOfConditions = &operation{
	name: "? :", params: []kind{condition, condition, condition}, result: condition, apply: chooseRows,
}

func unary(name string, f func(float64) float64) *operation {
	return &operation{name: name, params: []kind{number}, apply: func(dst, a, _, _ []float64) {
		a = a[:len(dst)]
		for n := range dst {
			dst[n] = f(a[n])
		}
	}}
}

func binary(name string, f func(a, b float64) float64) *operation {
	return &operation{name: name, params: []kind{number, number}, apply: func(dst, a, b, _ []float64) {
		a, b = a[:len(dst)], b[:len(dst)]
		for n := range dst {
			dst[n] = f(a[n], b[n])
		}
	}}
}

func folding(name string, f func(a, b float64) float64) *operation {
	op := binary(name, f)
	op.folds = true
	return op
}

func comparison(name string, holds func(a, b float64) bool) *operation {
	op := binary(name, func(a, b float64) float64 {
		if holds(a, b) {
			return 1
		}
		return 0
	})
	op.result = condition
	return op
}

// logical returns an operation on one or two conditions; with one, f gets it twice.
func logical(name string, operands int, f func(a, b float64) float64) *operation {
	op := binary(name, f)
	apply := op.apply
	if operands == 1 {
		op.apply = func(dst, a, _, _ []float64) { apply(dst, a, a, nil) }
	}
	op.params, op.result = []kind{condition, condition}[:operands], condition
	return op
}

func sign(a float64) float64 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return a
}

// The four arithmetic operations have loops without calls, since most expressions are dominated by them.

func addRows(dst, a, b, _ []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for n := range dst {
		dst[n] = a[n] + b[n]
	}
}

func subtractRows(dst, a, b, _ []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for n := range dst {
		dst[n] = a[n] - b[n]
	}
}

func multiplyRows(dst, a, b, _ []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for n := range dst {
		dst[n] = a[n] * b[n]
	}
}

func divideRows(dst, a, b, _ []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for n := range dst {
		dst[n] = a[n] / b[n]
	}
}

func chooseRows(dst, a, b, c []float64) {
	a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
	for n := range dst {
		if a[n] != 0 {
			dst[n] = b[n]
		} else {
			dst[n] = c[n]
		}
	}
}
