//go:build !unix

package streams

func newSharedBytes(int64) (*SharedBytes, error) { return nil, errUnshared }

func openSharedBytes(string, int64) (*SharedBytes, error) { return nil, errUnshared }

// Unlink does nothing: there are no shared bytes.
func (s *SharedBytes) Unlink() error { return nil }

// Close does nothing: there are no shared bytes.
func (s *SharedBytes) Close() error { return nil }
