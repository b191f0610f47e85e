package halo

import (
	"context"

	"github.com/halox/halox/p2p/mpi"
)

// Among returns the session for others to share grids with: for the processes that are given, which all call it, or for this
// process alone where there are none. Devices and links are the session's, which stays as it was; only that one is closed.
func (s *Session) Among(ctx context.Context, processes *mpi.Processes) (*Session, error) {
	if err := s.Usable(); err != nil {
		return nil, err
	}
	t := *s
	t.asked.Processes, t.counts = processes.OrAlone(), nil
	switch {
	case processes.IsAlone():
		return &t, nil
	case ctx == nil:
		return nil, processes.Fail(errNoContext)
	}
	var err error
	if t.counts, err = t.asked.count(ctx, len(s.Devices)); err != nil || s.asked.Processes.IsAlone() {
		return &t, err
	}
	return &t, t.networks().follow(ctx, s.asked.Processes)
}

// Counts returns how many devices each process has, by rank; of one where no processes share grids.
func (s *Session) Counts() []int {
	if s.counts == nil {
		return []int{len(s.Devices)}
	}
	return append([]int(nil), s.counts...)
}
