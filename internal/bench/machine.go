package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p/mpi"
)

// Machine is the open devices that a benchmark measures, and who measures them. Where processes measure together each
// has a machine with devices of its own. All run the same tasks in the same order, and rank 0 keeps what comes of them.
type Machine struct {
	*halo.Session
	Processes *mpi.Processes // that measure together
}

// All returns how many devices all processes have.
func (m *Machine) All() (n int) {
	for _, some := range m.Counts() {
		n += some
	}
	return n
}

// First returns the machine of the first n devices: of rank 0 alone where it has as many, else of the first processes.
// On processes that take no part it is nil. All processes call it, and close on all what it returns. Processes take
// part with all of their devices: another number of devices is left out.
func (m *Machine) First(ctx context.Context, n int) (first *Machine, err error) {
	if m.Processes.IsAlone() || n == m.All() {
		return m, nil
	}
	counts := m.Counts()
	if n <= counts[0] {
		if m.Processes.Rank > 0 {
			return nil, nil
		}
		alone, err := m.Among(ctx, mpi.Alone())
		return &Machine{Session: alone, Processes: mpi.Alone()}, err
	}
	some, sum := 0, 0
	for sum < n && some < len(counts) {
		sum, some = sum+counts[some], some+1
	}
	if sum != n {
		return nil, LeaveOut(fmt.Errorf("%d devices: of these, processes take part with all of their devices, %v", n,
			counts))
	}
	processes, err := m.Processes.First(ctx, some)
	if err != nil || processes == nil {
		return nil, err
	}
	session, err := m.Among(ctx, processes)
	if err != nil {
		return nil, errors.Join(err, processes.Close())
	}
	return &Machine{Session: session, Processes: processes}, nil
}

// LeaveTo ends the part that the processes of a machine have in those of another, of which it is the first.
func (m *Machine) LeaveTo(all *Machine) error {
	if m == nil || m == all || m.Processes.IsAlone() {
		return nil
	}
	return m.Processes.Close()
}

// Cubes returns how n cubes, or with two axes squares, lie side by side, the parts along each
// axis: these get the prime factors of n, in turns from the last.
func Cubes(axes, n int) domain.Vec {
	parts := domain.Vec{1, 1, 1}
	for axis, factor := axes-1, 2; n > 1; {
		if n%factor != 0 {
			factor++
			continue
		}
		parts[axis] *= factor
		n /= factor
		axis = (axis + axes - 1) % axes
	}
	return parts
}

// Slabs returns n parts along the last axis.
func Slabs(axes, n int) domain.Vec {
	parts := domain.Vec{1, 1, 1}
	parts[axes-1] = n
	return parts
}
