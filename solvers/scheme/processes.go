package scheme

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo"
)

// Where processes share the grid each has a Runner of all its subdomains, with launches, streams and workers for its own.
// What may differ between processes, time, contexts and errors, they agree on: each decides then as all others do.

// isShared reports whether other processes take part in what is done with a placement. In a dry run none does.
func isShared(p *halo.Placement) bool { return p.Processes != nil && !p.FirstDevice().IsDry() }

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
