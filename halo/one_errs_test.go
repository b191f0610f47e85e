//go:build linux

package halo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// errs carries out a collective call of which what rank 1 gives is wrong: all return an error at once, which names rank 1, and can
// go on.
func (p processes) errs(name, why string, call func(wrong bool) error) error {
	begin := time.Now()
	err := call(p.Rank == 1)
	switch took := time.Since(begin); {
	case err == nil || !strings.Contains(err.Error(), why):
		return fmt.Errorf("%s: %w, want %q", name, err, why)
	case p.Rank != 1 && !strings.Contains(err.Error(), p.Name(1)):
		return fmt.Errorf("%s: it does not name %s: %w", name, p.Name(1), err)
	case took > testLimit/3:
		return fmt.Errorf("%s took %v", name, took)
	}
	return p.Err()
}

// oneErrs has rank 1 alone make a mistake in each call that all make.
func oneErrs(p processes) error {
	ctx := context.Background()
	place, spec := p.chain(1)
	plan := must(halo.NewPlan(place, p.links, p2p.Auto, spec))(here)
	f := must(halo.NewField(place, spec))(here)
	s := must(halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 1, Processes: p.Processes}))(here)
	compiler := func(wrong bool) *kernels.Compiler {
		if wrong {
			return nil
		}
		return p.compiler
	}
	ended, end := context.WithCancelCause(ctx)
	end(errors.New("rank 1 has enough"))
	contexts := map[bool]context.Context{false: ctx, true: ended}
	return errors.Join(
		p.errs("Open with a context that has ended", "context canceled", func(wrong bool) error {
			_, err := halo.Open(contexts[wrong], halo.Devices{Backend: streams.Host, Count: 1, Processes: p.Processes})
			return err
		}),
		p.errs("Open of -1 devices", "Devices.Count: -1 is negative", func(wrong bool) error {
			_, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: map[bool]int{false: 1, true: -1}[wrong], Processes: p.Processes})
			return err
		}),
		p.errs("Session.NewExchanger", "context canceled", func(wrong bool) error {
			_, err := s.NewExchanger(contexts[wrong], f)
			return err
		}),
		p.errs("NewExchanger", "the compiler is nil", func(wrong bool) error {
			_, err := halo.NewExchanger(plan, compiler(wrong), f)
			return err
		}),
		p.errs("NewAccumulator", "the compiler is nil", func(wrong bool) error {
			_, err := halo.NewAccumulator(plan, compiler(wrong), f)
			return err
		}),
		p.errs("Reduce", "the compiler is nil", func(wrong bool) error {
			_, err := halo.Reduce(f, compiler(wrong), halo.Sum)
			return err
		}),
		s.Close(),
	)
}
