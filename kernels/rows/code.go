package rows

// code is the instructions and operands of a Program.
type code[T Float] struct {
	instructions []instruction[T]
	operands     []operand[T]
	assembly     bool
	parts        []part // instructions in assembly, and instructions in Go between them
	mixed        bool   // true if some instructions are not in assembly
	once         bool   // true if no point may be computed twice
}

// block is the number of points that operations in Go process at a time, small enough that intermediate values stay in
// the nearest cache.
const block = 256

// An operand is either a row that is set, or a buffer of one block for a number or an intermediate value.
type operand[T Float] struct {
	row    []T
	buffer []T // nil for a row
	now    []T // part with the points that are being computed
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

// rowMicro contains the indices of an instruction in assembly and of its operand.
type rowMicro struct{ micro, operand int }

// micro is an instruction in assembly: an operation on the accumulator and an operand in memory.
type micro struct {
	code    uintptr // address of the instruction
	address uintptr // address of the operand
	mask    int64   // -1 if the operand is a row; 0 if it is the same for all vectors
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
