package ranks

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p/mpi"
)

// shape is the first data that the processes of a world exchange.
type shape struct {
	Devices int
	Program string // see describe
}

// joinProcesses exchanges the number of devices of each process, and compares their programs. err is an error
// of this process.
func (w *World) joinProcesses(err error) error {
	p := w.options.Processes
	if p.IsAlone() {
		w.owners = make([]int, len(w.devices))
		return err
	}
	var made error
	if w.remote, made = newRemote(p, w.options.Limit); made != nil {
		return p.Fail(made)
	}
	w.resources.Add(w.remote)
	mine := shape{Devices: len(w.devices)}
	if err == nil {
		mine.Program = w.describe()
	}
	all, err := gather(w, "meet the other processes", mine, err)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if other.Program != mine.Program {
			return fmt.Errorf("ranks: %s has world %s, %s has %s",
				p.Name(rank), other.Program, p.Name(p.Rank), mine.Program)
		}
		if rank == p.Rank {
			w.before = len(w.owners)
		}
		for range other.Devices {
			w.owners = append(w.owners, rank)
		}
	}
	if len(w.owners) > MaxDevices {
		return fmt.Errorf("ranks: %s: must have at most %d devices, got %d", w.program.Name, MaxDevices, len(w.owners))
	}
	return nil
}

// describe returns what must be equal on all processes.
func (w *World) describe() string {
	return fmt.Sprintf(
		"%q: kernel %q of source %08x, %d threads, %d bytes shared, on %v devices, queues %t, checks %t, "+
			"a limit of %v, ranks in multiples of %d",
		w.program.Name,
		w.program.Kernel,
		checksum(w.program.Source),
		w.program.Threads,
		w.program.Shared,
		w.devices[0].Backend,
		w.options.Queues,
		w.options.Checks,
		w.options.Limit,
		max(1, w.options.Multiple),
	)
}

// checksum returns the checksum of all sources of a kernel except halox's own headers.
func checksum(s kernels.Source) uint32 {
	sum := crc32.NewIEEE()
	fmt.Fprintf(sum, "%q %q %q", s.Name, s.Text, s.Defines)
	for _, h := range s.Headers {
		fmt.Fprintf(sum, " %q %q", h.Name, h.Text)
	}
	return sum.Sum32()
}

// agreeOnRanks sets the ranks per device to the minimum over all processes.
func (w *World) agreeOnRanks(err error) error {
	all, err := gather(w, "count ranks", w.ranks, err)
	if err == nil {
		w.ranks = slices.Min(all)
	}
	return err
}

// gatherMemories returns the addresses of the memory of all devices of the world, each valid in its own
// process; nil on CPU devices.
func (w *World) gatherMemories(err error) ([]uint64, error) {
	var mine []uint64
	for _, m := range w.members {
		if m.memory != nil {
			mine = append(mine, m.memory.Address())
		}
	}
	all, err := gather(w, "open the devices", mine, err)
	return slices.Concat(all...), err
}

// ending is how a run has ended at a process, as sent to the others.
type ending struct {
	Text              string // error text; "" for none
	Timeout, Argument bool
	Code              *CodeError
}

// otherProcessError is the error of a run at another process. It wraps ErrTimeout, ErrArgument and CodeError
// like errors of this process.
type otherProcessError struct {
	*mpi.RemoteError
	is []error
}

// Unwrap returns the error of the other process and what it wraps there.
func (e *otherProcessError) Unwrap() []error { return append([]error{e.RemoteError}, e.is...) }

// endTogether returns the errors of a run on all processes, nil if there are none.
func (w *World) endTogether(mine error) error {
	if w.remote == nil {
		return mine
	}
	p := w.remote.processes
	if first := p.Err(); first != nil {
		if errors.Is(mine, first) {
			return mine
		}
		return errors.Join(here(mine), first)
	}
	all, err := mpi.Gather(context.Background(), p, fmt.Sprintf("ranks: %s: end a run", w.program.Name), endingOf(mine))
	if err != nil {
		return errors.Join(here(mine), err)
	}
	errs := []error{here(mine)}
	for rank, e := range all {
		if rank != p.Rank && e.Text != "" {
			errs = append(errs, w.otherProcess(rank, e))
		}
	}
	if err := errors.Join(errs...); err != nil || mine == nil {
		return err
	}
	return mine
}

// here returns an error, or nil if it only reports that another process has one.
func here(err error) error {
	if err == errOtherProcess {
		return nil
	}
	return err
}

func endingOf(err error) (e ending) {
	if err == nil || err == errOtherProcess {
		return e
	}
	e = ending{Text: err.Error(), Timeout: errors.Is(err, ErrTimeout), Argument: errors.Is(err, ErrArgument)}
	e.Code, _ = errors.AsType[*CodeError](err)
	return e
}

// otherProcess is the error of another process.
func (w *World) otherProcess(rank int, e ending) error {
	err := &otherProcessError{
		RemoteError: &mpi.RemoteError{Rank: rank, Host: w.remote.processes.Hosts[rank], Text: e.Text},
	}
	if e.Timeout {
		err.is = append(err.is, ErrTimeout)
	}
	if e.Argument {
		err.is = append(err.is, ErrArgument)
	}
	if e.Code != nil {
		e.Code.Means = w.program.Errors[e.Code.Code]
		err.is = append(err.is, e.Code)
	}
	return err
}
