package streams

import (
	"fmt"
	"runtime/debug"
)

// Caught, deferred around a call of a function that a caller gave, makes a panic in it the error, which says whose
// function it was: what it is, as "the profile at face", and of what. It allocates nothing unless there is a panic.
func Caught(err *error, what, of string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s %s panicked: %v\n%s", what, of, p, debug.Stack())
	}
}
