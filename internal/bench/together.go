package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
)

// Batch makes n runs of what is measured and returns what one took, in microseconds.
type Batch func(n int) (float64, error)

// order is what rank 0 has the others do: to make a batch, or to take over what came of all.
type order struct {
	Runs   int // of the batch; 0 at the end
	Sample results.Sample
	Failed string
}

// answer is what a batch came to on one process.
type answer struct {
	Took   float64
	Failed string
	Ended  bool // its context has
}

// Together measures batches that all processes make at once: measure is called on rank 0 alone, and says how many runs
// each batch has. What a batch took is what it took the slowest. All processes return the same sample. Where this one is alone
// it just measures.
func Together(ctx context.Context, p *mpi.Processes, batch Batch, measure func(Batch) (results.Sample, error)) (results.Sample, error) {
	if p == nil {
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

// follow makes batches until rank 0 has measured.
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
	text, err := json.Marshal(o)
	if err != nil {
		return o, p.Fail(err)
	}
	text, err = p.Broadcast(context.Background(), "measure together", text, 0)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(text, &o)
}

// together makes one batch. It is an error on all where one fails, and context.Canceled where the context of one has ended.
func together(ctx context.Context, p *mpi.Processes, batch Batch, n int) (slowest float64, err error) {
	mine := answer{Ended: ctx.Err() != nil}
	took, err := batch(n)
	if mine.Took = took; err != nil {
		mine.Took, mine.Failed = 0, err.Error()
	}
	text, failed := json.Marshal(mine)
	if failed != nil {
		return 0, p.Fail(failed)
	}
	all, failed := p.Gather(context.Background(), "measure together", text)
	if failed != nil {
		return 0, errors.Join(err, failed)
	}
	ended := false
	for rank, text := range all {
		var a answer
		if err := json.Unmarshal(text, &a); err != nil {
			return 0, fmt.Errorf("%s: %w", p.Name(rank), err)
		}
		if a.Failed != "" && err == nil {
			err = &mpi.RemoteError{Rank: rank, Host: p.Hosts[rank], Text: a.Failed}
		}
		slowest, ended = max(slowest, a.Took), ended || a.Ended
	}
	if err == nil && ended {
		err = context.Canceled
	}
	return slowest, err
}

// AgreeToGoOn returns context.Canceled on all processes where the context of one has ended, and an error on all where one has
// one. All call it.
func AgreeToGoOn(ctx context.Context, p *mpi.Processes, mine error) error {
	if p == nil {
		if mine == nil {
			mine = ctx.Err()
		}
		return mine
	}
	note := "" // goes on
	switch {
	case ctx.Err() != nil || errors.Is(mine, context.Canceled):
		note = "ended"
	case mine != nil:
		note = "failed " + mine.Error()
	}
	all, err := p.Gather(context.Background(), "go on measuring", []byte(note))
	if err != nil {
		return errors.Join(mine, err)
	}
	for rank, note := range all {
		switch text := string(note); {
		case text == "ended":
			return context.Canceled
		case text != "" && mine == nil:
			mine = &mpi.RemoteError{Rank: rank, Host: p.Hosts[rank], Text: text[len("failed "):]}
		}
	}
	return mine
}
