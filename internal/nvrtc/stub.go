//go:build !linux || !cgo

package nvrtc

const supported = false

func loads(string) bool { return false }

// Compiler is a loaded NVRTC library. This build cannot load one.
type Compiler struct{}

// Open returns ErrUnsupported.
func Open(string) (*Compiler, error) { return nil, ErrUnsupported }

// Cancel does nothing.
func (*Compiler) Cancel() {}

// Close does nothing.
func (*Compiler) Close() error { return nil }

// Version returns ErrUnsupported.
func (*Compiler) Version() (major, minor int, err error) { return 0, 0, ErrUnsupported }

// SupportedArchs returns ErrUnsupported.
func (*Compiler) SupportedArchs() ([]int, error) { return nil, ErrUnsupported }

// Compile returns ErrUnsupported.
func (*Compiler) Compile(Source, []string) (Result, error) { return Result{}, ErrUnsupported }
