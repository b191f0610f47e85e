//go:build !linux

package streams

// adviseHuge does nothing on systems where a program cannot request huge pages.
func adviseHuge([]byte) {}
