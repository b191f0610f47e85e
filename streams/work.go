package streams

// Work says what kind of work an operation is, for one who looks at a trace.
type Work string

// The kinds of work. A kernel that says nothing else does OtherWork.
const (
	Sweep     Work = "sweep"    // a stencil applied to points
	Pack      Work = "pack"     // messages gathered into a buffer
	Unpack    Work = "unpack"   // messages spread out of a buffer
	Exchange  Work = "exchange" // a kernel that stores into the memory of neighbours
	CopyWork  Work = "copy"     // messages on their way between memories
	WaitWork  Work = "wait"     // nothing is done: the stream waits for an event
	OtherWork Work = "other"
)

// Communicates reports whether the work is part of an exchange.
func (w Work) Communicates() bool {
	return w == Pack || w == Unpack || w == Exchange || w == CopyWork
}
