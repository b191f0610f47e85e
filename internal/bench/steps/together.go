package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// agree returns the error, or where processes make the steps together an error on all if any has one: that something is left
// out, unless one of them has failed.
func agree(p *mpi.Processes, mine error) error {
	if p == nil {
		return mine
	}
	note, why := "", (leftOut{})
	switch {
	case errors.As(mine, &why):
		note = "-" + why.Error()
	case mine != nil:
		note = "!" + mine.Error()
	}
	all, err := p.Gather(context.Background(), "make steps together", []byte(note))
	if err != nil {
		return errors.Join(mine, err)
	}
	var left error
	for rank, b := range all {
		switch text := string(b); {
		case text == "":
		case text[0] == '!' && rank == p.Rank:
			return mine
		case text[0] == '!':
			return &mpi.RemoteError{Rank: rank, Host: p.Hosts[rank], Text: text[1:]}
		case left == nil:
			left = leftOut{fmt.Errorf("%s", text[1:])}
		}
	}
	return left
}

// follow makes steps as long as rank 0 asks for more.
func follow(ctx context.Context, s *solvers.Solver, o scheme.Options) error {
	o.Interval = func(int64, time.Duration) int64 { return 1 } // what rank 0 says counts
	result, err := s.Run(ctx, o)
	switch {
	case errors.Is(err, scheme.ErrUnsuited):
		return leftOut{err}
	case err == nil && result.Stopped == scheme.StoppedInterrupted:
		return context.Canceled
	}
	return err
}
