package bench

import "github.com/halox/halox/halo"

// Machine is the open devices that a benchmark measures, and who measures them.
type Machine struct {
	*halo.Session
	Program string // what built the program
}
