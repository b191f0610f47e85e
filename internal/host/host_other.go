//go:build !linux

package host

import (
	"errors"
	"math"
)

// Host reads the numbers.
type Host struct{}

// Open returns an error: the free memory is not known on this system.
func Open() (*Host, error) {
	return nil, errors.New("the free memory of the host is not known on this system")
}

// Now returns an error.
func (*Host) Now() (Memory, error) { return Memory{}, errors.New("not known") }

func (*Host) quota() int { return math.MaxInt }

// Cores is known on Linux only.
func Cores() (n int, ok bool) { return 0, false }
