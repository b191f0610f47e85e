package bench

import (
	"context"
	"errors"
	"slices"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// ErrLeftOut is wrapped by errors of measurements that are not possible on this machine, which is not a failure: the
// record gets a row with the reason. See LeaveOut.
var ErrLeftOut = errors.New("left out")

type leftOut struct{ error }

func (leftOut) Is(target error) bool { return target == ErrLeftOut }

func (l leftOut) Unwrap() error { return l.error }

// LeaveOut makes an error wrap ErrLeftOut if it is one of the given kinds; without kinds, always.
func LeaveOut(err error, kinds ...error) error {
	is := func(kind error) bool { return errors.Is(err, kind) }
	if err == nil || len(kinds) > 0 && !slices.ContainsFunc(kinds, is) {
		return err
	}
	return leftOut{err}
}

// Batch runs the measured work n times and returns the time of one, in microseconds.
type Batch func(n int) (float64, error)

// order is an order of rank 0 to the others: to run a batch, or to take over the result.
type order struct {
	Runs   int // of the batch; 0 at the end
	Sample results.Sample
	Failed string
}

// Together measures batches that all processes run at once: measure is called only on rank 0, and chooses the number of
// runs of each batch. The time of a batch is that of the slowest process. All processes return the same sample.
func Together(
	ctx context.Context, p *mpi.Processes, batch Batch, measure func(Batch) (results.Sample, error),
) (results.Sample, error) {
	if p.IsAlone() {
		return measure(batch)
	}
	if p.Rank > 0 {
		return follow(ctx, p, batch)
	}
	sample, failed := measure(func(n int) (float64, error) {
		if _, err := tell(p, order{Runs: n}); err != nil {
			return 0, err
		}
		return together(ctx, p, batch, n)
	})
	if p.Err() != nil {
		return sample, failed
	}
	last := order{Sample: sample}
	if failed != nil {
		last.Failed = failed.Error()
	}
	_, err := tell(p, last)
	return sample, errors.Join(failed, err)
}

// follow runs batches until rank 0 has measured.
func follow(ctx context.Context, p *mpi.Processes, batch Batch) (results.Sample, error) {
	for {
		o, err := tell(p, order{})
		switch {
		case err != nil:
			return results.Sample{}, err
		case o.Failed == context.Canceled.Error():
			return o.Sample, context.Canceled
		case o.Failed != "":
			return o.Sample, &mpi.RemoteError{Rank: 0, Host: p.Hosts[0], Text: o.Failed}
		case o.Runs == 0:
			return o.Sample, nil
		}
		if _, err := together(ctx, p, batch, o.Runs); err != nil && p.Err() != nil {
			return results.Sample{}, err
		}
	}
}

// tell returns the order of rank 0 on all processes.
func tell(p *mpi.Processes, o order) (order, error) {
	return mpi.Broadcast(context.Background(), p, "measure together", o, 0)
}

// together runs one batch. It is an error on all processes if one fails or if the context of one has ended.
func together(ctx context.Context, p *mpi.Processes, batch Batch, n int) (slowest float64, err error) {
	took, err := batch(n)
	if err := AgreeToGoOn(ctx, p, err); err != nil {
		return 0, err
	}
	all, err := mpi.Gather(context.Background(), p, "measure together", took)
	if err != nil {
		return 0, err
	}
	return slices.Max(all), nil
}

// AgreeToGoOn returns an error on all processes if one has an error or its context has ended: one that wraps
// context.Canceled, streams.ErrOutOfMemory or ErrLeftOut does so on all. All call it.
func AgreeToGoOn(ctx context.Context, p *mpi.Processes, mine error) error {
	if mine == nil {
		mine = ctx.Err()
	}
	return p.Agree(context.Background(), "go on measuring", mine, streams.ErrOutOfMemory, ErrLeftOut)
}
