//go:build !linux || !(amd64 || arm64)

package dl

// How a library is opened.
const Now, Global, Loaded = 0, 0, 0

func open(string, int) (Library, error) { return 0, ErrUnsupported }

// Symbol returns 0.
func (Library) Symbol(string) uintptr { return 0 }

// Call is not reached: no function is found.
func Call(uintptr, Args) int32 { return -1 }
