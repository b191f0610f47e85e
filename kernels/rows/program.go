package rows

import (
	"slices"

	"github.com/halox/halox/stencil"
)

// A Program computes formulas over rows, from the nodes of a stencil.Form. Operations are neither combined nor
// reassociated, and each result is rounded to T. In assembly, intermediate values stay in registers; otherwise they
// stay in the nearest cache. A Program must not be used by several goroutines at the same time.
type Program[T Float] struct {
	code[T]
	leaves  []int // operand of each node that is a leaf
	results int   // operand of the first result
}

// NewProgram returns a program whose results are some of the nodes. The rows of results must not overlap each other.
// The row of an in-place result may be a row that is read; the rows of other results must not overlap rows that are
// read.
func NewProgram[T Float](nodes []stencil.Node, results []int, inPlace []bool) *Program[T] {
	p := &Program[T]{code: code[T]{assembly: assembly, operands: []operand[T]{{buffer: make([]T, block)}}}}
	c := &compiler[T]{Program: p, nodes: nodes, left: make([]int, len(nodes)), place: make([]int, len(nodes)),
		result: map[int]int{}}
	for i, n := range nodes {
		at := -1
		if n.Op == "" {
			at = len(p.operands)
			one := operand[T]{}
			if n.Read < 0 && !n.Noise || n.Uniform {
				one.buffer, one.number = slices.Repeat([]T{T(n.Number)}, block), true
			}
			p.operands = append(p.operands, one)
		}
		p.leaves, c.place[i] = append(p.leaves, at), at
		for _, a := range n.Args {
			c.left[a]++
		}
	}
	p.results = len(p.operands)
	p.operands = append(p.operands, make([]operand[T], len(results))...)
	for i, at := range results {
		c.left[at] += len(nodes) // so that its operand is kept until the end
		if !inPlace[i] {
			c.result[at] = p.results + i
		}
		p.once = p.once || inPlace[i]
	}
	from := make([]int, len(results))
	for i, at := range results {
		from[i] = c.value(at, true)
		if p.once && nodes[at].Op == "" { // a result could overwrite this row before it is copied
			from[i] = c.temporary()
			c.emit("=", from[i], c.place[at])
		}
	}
	for i := range results {
		if to := p.results + i; from[i] != to {
			c.emit("=", to, from[i])
		}
	}
	p.assemble()
	return p
}

// SetNumber sets the value of a node that is one of stencil.Form.Values.
func (p *Program[T]) SetNumber(node int, value T) {
	buffer := p.operands[p.leaves[node]].buffer
	for i := range buffer {
		buffer[i] = value
	}
}

// SetUniform sets the value of a uniform node for the next n points, until it is set again.
func (p *Program[T]) SetUniform(node int, value T, n int) {
	buffer := p.operands[p.leaves[node]].buffer
	for i := range min(n, len(buffer)) {
		buffer[i] = value
	}
}

// Row returns where to set the row of a node that reads a field or is noise.
func (p *Program[T]) Row(node int) *Row[T] { return p.rowOf(p.leaves[node]) }

// Result returns where to set the row of a result.
func (p *Program[T]) Result(i int) *Row[T] { return p.rowOf(p.results + i) }

// Moves reports whether rows of n points may be moved instead of set, which takes less time.
func (p *Program[T]) Moves(n int) bool {
	_, fast := p.next(n)
	return fast && p.direct && !p.once && n <= most
}

// Run computes n points of all results. All rows must have at least n points.
func (p *Program[T]) Run(n int) {
	for done := 0; done < n; {
		points, fast := p.next(n - done)
		if !fast || p.mixed {
			for i := range p.operands {
				if o := &p.operands[i]; o.buffer == nil {
					o.now = o.row[done : done+points]
				} else {
					o.now = o.buffer[:points]
				}
			}
		}
		if fast {
			p.run(done, points)
		} else {
			for i := range p.instructions {
				p.apply(&p.instructions[i])
			}
		}
		done += points
	}
}

// A compiler generates the code of a Program. A node that is used once is computed where it is used, so that its value
// can stay in the accumulator.
type compiler[T Float] struct {
	*Program[T]
	nodes []stencil.Node
	left  []int // remaining uses of each node
	place []int // operand of each node; -1 if it has not been computed
	free  []int // operands that can be reused

	result map[int]int // operand of each result, by node
}

func (c *compiler[T]) emit(name string, dst int, args ...int) {
	one := instruction[T]{name: name, apply: operationOf[T](name, len(args)), dst: dst, count: len(args)}
	copy(one.args[:], args)
	c.instructions = append(c.instructions, one)
}

// value returns the operand of a node, and computes the node if necessary. If kept is false, the operand may be the
// accumulator.
func (c *compiler[T]) value(node int, kept bool) int {
	switch {
	case c.place[node] >= 0:
		return c.place[node]
	case c.result[node] > 0:
		return c.compute(node, c.result[node])
	case kept || c.left[node] > 1:
		return c.compute(node, -1)
	}
	return c.compute(node, accumulator)
}

// temporary returns an operand for an intermediate value.
func (c *compiler[T]) temporary() (at int) {
	if last := len(c.free) - 1; last >= 0 {
		at, c.free = c.free[last], c.free[:last]
		return at
	}
	c.operands = append(c.operands, operand[T]{buffer: make([]T, block)})
	return len(c.operands) - 1
}

// compute computes a node into the operand dst, or into a new one if dst is -1.
func (c *compiler[T]) compute(node, dst int) int {
	n := c.nodes[node]
	name, args := n.Op, make([]int, len(n.Args))
	used := n.Args
	ready := func(i int) bool { return c.place[n.Args[i]] >= 0 }
	isProduct := func(i int) bool { // of operands that are known, which is used only here
		of := c.nodes[n.Args[i]]
		return of.Op == "*" && c.left[n.Args[i]] == 1 && !ready(i) && c.place[of.Args[0]] >= 0 &&
			c.place[of.Args[1]] >= 0
	}
	product := func(named string, added, multiplied int) {
		of := c.nodes[n.Args[multiplied]]
		name, used = named, []int{n.Args[added], of.Args[0], of.Args[1]}
		args = []int{c.value(n.Args[added], false), c.place[of.Args[0]], c.place[of.Args[1]]}
	}
	switch sum := n.Op == "+" || n.Op == "-" && len(args) == 2; {
	case sum && isProduct(1):
		product("a"+n.Op+"b*c", 0, 1)
	case sum && isProduct(0):
		product(map[string]string{"+": "a+b*c", "-": "b*c-a"}[n.Op], 1, 0)
	case len(args) == 2 && ready(0) && reversed[n.Op] != "":
		args[0], args[1] = c.place[n.Args[0]], c.value(n.Args[1], false)
	default:
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = c.value(n.Args[i], i > 0 || !inAssembly(name, len(args)))
		}
	}
	for _, a := range used {
		if c.left[a]--; c.left[a] == 0 && c.nodes[a].Op != "" && c.place[a] >= 0 {
			c.free = append(c.free, c.place[a])
		}
	}
	if dst < 0 {
		dst = c.temporary()
	}
	if dst != accumulator {
		c.place[node] = dst
	}
	c.emit(name, dst, args...)
	return dst
}
