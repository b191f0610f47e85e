//go:build !linux || !cgo

package nccl

// Library is an NCCL library in this process. This build cannot open one.
type Library struct{ Path, Version string }

// Comm is one rank of a communicator.
type Comm struct{}

// Open returns ErrUnsupported.
func Open(string) (*Library, error) { return nil, ErrUnsupported }

// NewID returns ErrUnsupported.
func (*Library) NewID() (ID, error) { return ID{}, ErrUnsupported }

// Begin returns ErrUnsupported.
func (*Library) Begin(ID, int, int) (*Comm, error) { return nil, ErrUnsupported }

// Ready returns ErrUnsupported, as all methods do.
func (*Comm) Ready() (bool, error)                      { return false, ErrUnsupported }
func (*Comm) Send(uint64, int64, int, uintptr) error    { return ErrUnsupported }
func (*Comm) Receive(uint64, int64, int, uintptr) error { return ErrUnsupported }
func (*Comm) Finalize() error                           { return ErrUnsupported }
func (*Comm) Destroy() error                            { return ErrUnsupported }
func (*Comm) Abort() error                              { return ErrUnsupported }
