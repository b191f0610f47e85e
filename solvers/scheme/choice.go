package scheme

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Where processes share the grid, all try the same schemes in the same order, and what rank 0 finds is what all take: what it
// remembers, and what its clock says. What one of them cannot, all leave out.

// same returns what rank 0 gives, on all processes that share a grid, also in a dry run. Where this one is alone it is what it gives.
func same[T any](p *halo.Placement, what string, mine T) (of T, err error) {
	if p.Processes.IsAlone() {
		return mine, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return of, p.Processes.Fail(err)
	}
	if text, err = p.Processes.Broadcast(context.Background(), "scheme: "+what, text, 0); err != nil {
		return of, err
	}
	return of, json.Unmarshal(text, &of)
}

// outcomes are those of a trial that are told apart, the worse the later. What else fails is worse, and an end is the worst.
var outcomes = [...]error{nil, ErrUnsuited, streams.ErrOutOfMemory, kernels.ErrNotCompiled}

const (
	failedOutcome = byte(len(outcomes))
	endedOutcome  = failedOutcome + 1
)

func outcomeOf(err error) byte {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return endedOutcome
	}
	for i, o := range outcomes {
		if o != nil && errors.Is(err, o) {
			return byte(i)
		}
	}
	return failedOutcome
}

// Agreed returns the worst outcome of a trial on any process that shares the grid, on all of them: what wraps ErrUnsuited,
// streams.ErrOutOfMemory or kernels.ErrNotCompiled on one does on all. All processes call it, also in a dry run.
func Agreed(p *halo.Placement, mine error) error {
	if p == nil || p.Processes.IsAlone() {
		return mine
	}
	note := []byte{outcomeOf(mine)}
	if mine != nil {
		note = append(note, mine.Error()...)
	}
	all, err := p.Processes.Gather(context.Background(), "scheme: choose together", note)
	if err != nil {
		return errors.Join(mine, err)
	}
	worst := 0
	for rank, note := range all {
		if note[0] > all[worst][0] {
			worst = rank
		}
	}
	switch kind, text := all[worst][0], all[worst][1:]; {
	case kind == 0:
		return nil
	case kind == note[0]:
		return mine
	case kind == endedOutcome:
		return fmt.Errorf("%s: %w", p.Processes.Name(worst), context.Canceled)
	case kind == failedOutcome:
		return fmt.Errorf("%s: %s", p.Processes.Name(worst), text)
	default:
		return fmt.Errorf("%w: %s: %s", outcomes[kind], p.Processes.Name(worst), text)
	}
}
