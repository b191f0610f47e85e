package stencil

// A program is an expression as a list of steps. Each uses results of earlier steps only, and no two are the same, so
// that what is written twice is computed once. Both sides of a choice are computed: no operation has side effects.
type program struct {
	steps []step
	root  int // the step whose value is the expression's
}

// A step is an operation on earlier steps or, without one, a variable or a number. Steps are comparable.
type step struct {
	op     *operation // nil: a leaf
	args   [3]int     // the steps op works on
	leaf   string     // the variable's name; "": the number value
	value  float64
	varies variation
}

// A builder grows a program. The zero value is ready for use.
type builder struct {
	steps []step
	known map[step]int
}

// add gives the place of s in the program, where it may be already.
func (b *builder) add(s step) int {
	if at, ok := b.known[s]; ok {
		return at
	}
	if b.known == nil {
		b.known = map[step]int{}
	}
	b.steps = append(b.steps, s)
	b.known[s] = len(b.steps) - 1
	return len(b.steps) - 1
}

func (b *builder) number(value float64) int { return b.add(step{value: value}) }

func (b *builder) variable(v variable) int { return b.add(step{leaf: v.name, varies: v.varies}) }

// apply adds op on args. A square becomes a product, which takes a tenth of the time and has the same bits, if
// it is not subnormal.
func (b *builder) apply(op *operation, args ...int) int {
	if op == power && b.steps[args[1]] == (step{value: 2}) {
		op, args = product, []int{args[0], args[0]}
	}
	s := step{op: op}
	copy(s.args[:], args)
	for _, a := range args {
		s.varies |= b.steps[a].varies
	}
	return b.add(s)
}
