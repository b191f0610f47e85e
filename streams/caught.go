package streams

import (
	"fmt"
	"runtime/debug"
)

// Caught, deferred around a call of a function that a caller gave, makes a panic in it the error, which says whose
// function it was: what it is, as "Stage.Kernels of stage", and of which name. It allocates nothing unless there is a panic.
func Caught(err *error, what, of string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s %q panicked: %v\n%s", what, of, p, debug.Stack())
	}
}
