package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p/mpi"
)

// Machine is the open devices that a benchmark measures, and the processes that measure them. If several processes
// measure together, each has a machine with its own devices. All run the same tasks in the same order, and rank 0 keeps
// the results.
type Machine struct {
	*halo.Session
	Processes *mpi.Processes // that measure together
}

// All returns the number of devices of all processes.
func (m *Machine) All() (n int) {
	for _, some := range m.Counts() {
		n += some
	}
	return n
}

// First returns the machine of the first n devices: those of rank 0 if it has as many, otherwise those of the first
// processes. It is nil on processes that do not take part. All processes call it, and close the result. Processes take
// part with all of their devices: other numbers of devices are left out.
func (m *Machine) First(ctx context.Context, n int) (first *Machine, err error) {
	if m.Processes.IsAlone() || n == m.All() {
		return m, nil
	}
	counts := m.Counts()
	if n <= counts[0] {
		if m.Processes.Rank > 0 {
			return nil, nil
		}
		alone, err := m.WithProcesses(ctx, mpi.Alone())
		return &Machine{Session: alone, Processes: mpi.Alone()}, err
	}
	some, sum := 0, 0
	for sum < n && some < len(counts) {
		sum, some = sum+counts[some], some+1
	}
	if sum != n {
		return nil, LeaveOut(fmt.Errorf("%d devices: must be all devices of some processes, and these have %v", n,
			counts))
	}
	processes, err := m.Processes.First(ctx, some)
	if err != nil || processes == nil {
		return nil, err
	}
	session, err := m.WithProcesses(ctx, processes)
	if err != nil {
		return nil, errors.Join(err, processes.Close())
	}
	return &Machine{Session: session, Processes: processes}, nil
}

// LeaveTo closes the group of processes of a machine that First returned.
func (m *Machine) LeaveTo(all *Machine) error {
	if m == nil || m == all || m.Processes.IsAlone() {
		return nil
	}
	return m.Processes.Close()
}

// Cubes returns the numbers of n adjacent cubes, or squares in two dimensions, along each axis: the axes get the prime
// factors of n in turns, starting with the last axis.
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
