//go:build !linux

package streams

// adviseHuge does nothing where huge pages are not the program's to ask for.
func adviseHuge([]byte) {}
