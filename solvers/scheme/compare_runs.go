package scheme

import (
	"context"
	"fmt"
)

// suitsAll returns ErrUnsuited where a scheme cannot run the step on one of the processes: paths may differ within them.
func (x *Runner) suitsAll(def *definition, o Options) error {
	err := def.suits(x, o)
	agreed := x.place.Agree(context.Background(), "see whether the scheme suits", err)
	switch {
	case err != nil || agreed == nil:
		return err
	case x.place.Processes.Err() != nil: // one is lost
		return agreed
	}
	return fmt.Errorf("scheme: %w: %w", ErrUnsuited, agreed)
}

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
