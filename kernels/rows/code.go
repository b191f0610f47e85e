package rows

import "unsafe"

// code is the instructions and operands of a Program.
type code[T Float] struct {
	instructions []instruction[T]
	operands     []operand[T]
	assembly     bool
	parts        []part // instructions in assembly, and instructions in Go between them
	mixed        bool   // true if some instructions are not in assembly
	once         bool   // true if no point may be computed twice
	direct       bool   // true if all instructions are in assembly, as one part
}

// A Row is where a Program finds the values of an operand.
type Row[T Float] struct {
	operand *operand[T]
	places  []*uintptr // in instructions, if all are in assembly
}

// Set sets the row.
func (r *Row[T]) Set(row []T) {
	r.operand.row = row
	for _, p := range r.places {
		*p = addressOf(row)
	}
}

// A Mover moves rows that have been set, see Program.Moves.
type Mover[T Float] struct{ places []*uintptr }

// Add adds a row.
func (m *Mover[T]) Add(r *Row[T]) { m.places = append(m.places, r.places...) }

// Move moves the rows, which must stay within their arrays, to those that begin so many elements later.
func (m *Mover[T]) Move(elements int64) {
	var zero T
	bytes := uintptr(elements * int64(unsafe.Sizeof(zero)))
	for _, p := range m.places {
		*p += bytes
	}
}

func (p *code[T]) rowOf(operand int) *Row[T] {
	r := &Row[T]{operand: &p.operands[operand]}
	if p.direct {
		for _, m := range p.parts[0].rows {
			if m.operand == operand {
				r.places = append(r.places, &p.parts[0].micros[m.micro].at[m.place].address)
			}
		}
	}
	return r
}

// addressOf returns the address of values, which must also be referenced elsewhere so that they are not freed.
func addressOf[T Float](values []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(values))) }

// block is the number of points that operations in Go process at a time, small enough that intermediate values stay in
// the nearest cache.
const block = 256

// most is the maximum number of points that are computed at a time in assembly, which cannot be preempted.
const most = 8192

// An operand is either a row that is set, or a buffer of one block for a number or an intermediate value.
type operand[T Float] struct {
	row    []T
	buffer []T  // nil for a row
	number bool // all elements of the buffer are the same
	now    []T  // part with the points that are being computed
}

// accumulator is the operand for a value that only the next instruction uses. In assembly it is a register.
const accumulator = 0

// An instruction applies an operation to up to three operands and stores the result in another.
type instruction[T Float] struct {
	name  string
	apply operation[T]
	dst   int
	args  [3]int
	count int // number of args
}

// A part is either a sequence of instructions in assembly, or one instruction in Go.
type part struct {
	micros []micro
	rows   []rowMicro // micros whose operands are rows
	other  int        // index of the instruction in Go
}

// rowMicro contains the indices of an instruction in assembly, of its place and of the operand there.
type rowMicro struct{ micro, place, operand int }

// micro is an instruction in assembly: one or two operations on the accumulator, each with an operand in memory.
type micro struct {
	code uintptr // address of the instruction
	at   [2]memory
}

// memory is where an instruction finds an operand.
type memory struct {
	address uintptr
	mask    int64 // -1 if the operand is a row; 0 if it is the same for all vectors
}

// apply runs an instruction in Go.
func (p *code[T]) apply(c *instruction[T]) {
	now := func(i int) []T { return p.operands[c.args[i]].now }
	c.apply(p.operands[c.dst].now, now(0), now(1), now(2))
}

// reversed maps an operation to the operation that gives the same result with its two operands swapped.
var reversed = map[string]string{
	"+": "+", "-": "b-a", "*": "*", "/": "b/a", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=",
	"and": "and",
}
