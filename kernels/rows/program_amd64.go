//go:build amd64 && !race && !purego

package rows

import (
	"runtime"
	"slices"
	"unsafe"
)

// runProgram runs code that ends with the instruction end over a range of bytes of rows, at least 256.
//
//go:noescape
func runProgram(code *micro, from, to int)

// instructions64 and instructions32 return the addresses of the instructions, in the order of opcodes.
func instructions64() *[37]uintptr
func instructions32() *[37]uintptr

// vectors is the number of bytes that an instruction processes at a time.
const vectors = 256

// opcodes are the names of the instructions, see program_amd64.s.
var opcodes = []string{
	"end", "load", "load b", "=", "+", "-", "b-a", "*", "/", "b/a", "a+b*c", "a-b*c", "b*c-a", "min", "max",
	"<", "<=", ">", ">=", "==", "!=", "? :", "sqrt", "negate", "abs", "not", "floor", "ceil",
	"load, +", "+, +", "*, +", "+, =", "load b, a+b*c", // two instructions at once, which take less time
	"* number", "+ number", "* number, +", "load b number, a+b*c",
}

// inAssembly reports whether an operation is implemented in assembly.
func inAssembly(name string, operands int) bool { return opcode(name, operands) >= 0 }

func opcode(name string, operands int) int {
	switch {
	case name == "-" && operands == 1:
		name = "negate"
	case name == "and":
		name = "*"
	case name == "or":
		name = "max"
	}
	return slices.Index(opcodes, name)
}

// assemble builds the parts.
func (p *code[T]) assemble() {
	for i := range p.instructions {
		p.mixed = p.mixed || !inAssembly(p.instructions[i].name, p.instructions[i].count)
	}
	addresses := instructions64()
	if !isDouble[T]() {
		addresses = instructions32()
	}
	var now part
	held := -1 // operand whose value is in the accumulator
	before := ""
	add := func(op, operand int) {
		last, place := len(now.micros)-1, 1
		both := slices.Index(opcodes, before+", "+opcodes[op])
		if before = opcodes[op]; both >= 0 {
			now.micros[last].code, before = addresses[both], ""
		} else {
			if p.operands[operand].number {
				before += " number"
				op = max(op, slices.Index(opcodes, before)) // those with numbers are at the end
			}
			now.micros = append(now.micros, micro{code: addresses[op]})
			last, place = last+1, 0
		}
		m := &now.micros[last].at[place]
		if b := p.operands[operand].buffer; b != nil {
			m.address = addressOf(b)
		} else {
			now.rows = append(now.rows, rowMicro{last, place, operand})
		}
		if m.address == 0 || p.mixed {
			m.mask = -1
		}
	}
	end := func() {
		if len(now.micros) > 0 {
			add(0, accumulator)
			p.parts = append(p.parts, now)
		}
		now, held, before = part{}, -1, ""
	}
	for i := range p.instructions {
		c := &p.instructions[i]
		if !inAssembly(c.name, c.count) {
			end()
			p.parts = append(p.parts, part{other: i})
			continue
		}
		a, b, name := c.args[0], c.args[1], c.name
		if c.count == 2 && b == held && a != held {
			if other, ok := reversed[name]; ok {
				a, b, name = b, a, other
			}
		}
		if a != held {
			add(slices.Index(opcodes, "load"), a)
		}
		switch {
		case c.count == 3 && name == "? :":
			add(slices.Index(opcodes, "load b"), c.args[2])
			add(opcode(name, 3), b)
		case c.count == 3:
			last := c.args[2]
			if p.operands[last].number {
				b, last = last, b // a product of both
			}
			add(slices.Index(opcodes, "load b"), b)
			add(opcode(name, 3), last)
		case name != "=":
			add(opcode(name, c.count), b)
		}
		if held = c.dst; held != accumulator {
			add(slices.Index(opcodes, "="), held)
		}
	}
	end()
	p.direct = p.assembly && !p.mixed && len(p.parts) == 1
}

// next returns how many of the remaining points of a row to compute next, and whether to use assembly.
func (p *code[T]) next(points int) (n int, fast bool) {
	var zero T
	whole := vectors / int(unsafe.Sizeof(zero))
	switch {
	case !p.assembly || points < whole:
		return min(points, block), false
	case p.mixed: // buffers of intermediate values have the length of a block
		return min(points-points%whole, block), true
	case p.once:
		return min(points-points%whole, most), true
	}
	return min(points, most), true
}

// run computes a range of points of the rows.
func (p *code[T]) run(from, points int) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if p.direct {
		runProgram(&p.parts[0].micros[0], from*size, (from+points)*size)
		runtime.KeepAlive(p)
		return
	}
	for i := range p.parts {
		one := &p.parts[i]
		if one.micros == nil {
			p.apply(&p.instructions[one.other])
			continue
		}
		for _, r := range one.rows {
			one.micros[r.micro].at[r.place].address = addressOf(p.operands[r.operand].row[from : from+points])
		}
		runProgram(&one.micros[0], 0, points*size)
	}
	runtime.KeepAlive(p)
}
