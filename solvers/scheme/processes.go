package scheme

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo"
)

// Where processes share the grid each has a Runner of all its subdomains, with launches, streams and workers for its own.
// What may differ between processes, time, contexts and errors, they agree on: each decides then as all others do.

// isShared reports whether other processes take part in what is done with a placement. In a dry run none does.
func isShared(p *halo.Placement) bool { return p.Processes != nil && !p.FirstDevice().IsDry() }

func (x *Runner) shared() bool { return isShared(x.place) }

// agree returns the error, or where processes share the grid an error if one of them has one. All call it.
func agree(p *halo.Placement, what string, err error) error {
	if !isShared(p) {
		return err
	}
	return p.Processes.Agree(context.Background(), "scheme: "+what, err)
}

func (x *Runner) agree(what string, err error) error { return agree(x.place, what, err) }

// tell has the other processes told of a failure of this one.
func tell(p *halo.Placement, err error) error {
	if err == nil || !isShared(p) {
		return err
	}
	first := p.Processes.Err()
	switch {
	case first == nil:
		return p.Processes.Fail(err)
	case errors.Is(err, first):
		return err
	}
	return fmt.Errorf("%w (%w)", first, err)
}

func (x *Runner) tell(err error) error { return tell(x.place, err) }

// compareRuns returns an error unless all processes begin the same run.
func (x *Runner) compareRuns(name Scheme, o Options) error {
	if !x.shared() {
		return nil
	}
	p := x.place.Processes
	run := fmt.Sprintf("scheme %s %s, %d steps from %d, norms %s every %d, tolerance %v, intervals %t",
		name, o.Order, o.Steps, x.done, o.Norm, o.CheckEvery, o.Tolerance, o.Interval != nil)
	all, err := p.Gather(context.Background(), "scheme: compare the runs that processes begin", []byte(run))
	if err != nil {
		return err
	}
	for rank, other := range all {
		if string(other) != string(all[0]) {
			return fmt.Errorf("scheme: %s runs %s, and %s %s: all give the same options", p.Name(0), all[0], p.Name(rank), other)
		}
	}
	return nil
}

// checkOwners returns an error if a process owns no subdomain: it would have no part in what the others agree on.
func checkOwners(p *halo.Placement) error {
	if p.Processes == nil {
		return nil
	}
	for process := range p.Processes.Size() {
		if !slices.Contains(p.Owners, process) {
			return fmt.Errorf("scheme: %s owns none of the %d subdomains", p.Processes.Name(process), len(p.Owners))
		}
	}
	return nil
}

// localRanks returns the subdomains of this process.
func localRanks(p *halo.Placement) (ranks []int) {
	for rank := range p.Subdomains {
		if p.IsLocal(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// workerOf returns which of the process's subdomains that of a rank is: the number of its worker where each has one.
func (x *Runner) workerOf(rank int) int { return slices.Index(x.local, rank) }
