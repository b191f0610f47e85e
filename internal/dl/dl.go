// Package dl opens dynamic libraries at run time and calls their functions: with cgo by a C function, on Linux for
// amd64 and arm64 without cgo by purego. Elsewhere Open returns [ErrUnsupported].
package dl

import "errors"

// ErrUnsupported says that this build cannot open libraries.
var ErrUnsupported = errors.New("dynamic libraries need Linux on amd64 or arm64")

// Library is an open library. It is never closed.
type Library uintptr

// Args are the arguments of a call: integers, and addresses of memory that Go's collector does not know. A function
// ignores those that it does not take.
type Args [9]uintptr

// Table returns the addresses of the functions, and the names of those that the library lacks.
func (l Library) Table(names []string) (at []uintptr, missing []string) {
	for _, name := range names {
		address := l.Symbol(name)
		if address == 0 {
			missing = append(missing, name)
		}
		at = append(at, address)
	}
	return at, missing
}
