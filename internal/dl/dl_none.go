//go:build !linux || !(amd64 || arm64)

package dl

// Flags of dlopen.
const Now, Global, Loaded = 0, 0, 0

func open(string, int) (Library, error) { return 0, ErrUnsupported }

// Symbol returns 0.
func (Library) Symbol(string) uintptr { return 0 }

// Call is never called: there are no functions.
func Call(uintptr, Args) int32 { return -1 }
