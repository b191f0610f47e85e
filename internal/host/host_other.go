//go:build !linux

package host

import (
	"errors"
	"math"
)

// Host is where the numbers are read.
type Host struct{}

// Open returns an error: what is free is not known here.
func Open() (*Host, error) {
	return nil, errors.New("what is free of the host's memory is not known on this system")
}

// Now is for hosts that Open found.
func (*Host) Now() (Memory, error) { return Memory{}, errors.New("it is not known") }

func (*Host) quota() int { return math.MaxInt }

// Cores is known on Linux only.
func Cores() (n int, ok bool) { return 0, false }
