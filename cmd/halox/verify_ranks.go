package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo/ranks/litmus"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// ranksSoak is for how long litmus tests of ranks run, and which one alone.
type ranksSoak struct {
	long time.Duration
	seed uint32 // 0: random ones
}

// soak runs litmus tests of ranks and prints how many.
func (v *verifier) soak(ctx context.Context, s ranksSoak) error {
	tests := litmus.Tests{Compiler: v.session.Compiler, Links: v.session.Links, Limit: waitLimit, Seed: s.seed}
	done, err := tests.Soak(ctx, s.long, v.devices()...)
	fmt.Fprintf(v.out, "litmus tests of ranks: %d turns of %d rounds in %v\n", done.Turns, done.Rounds, done.Took.Round(time.Millisecond))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; --ranks-seed runs it again", err)
	}
	return err
}

// devices returns those of the file, each once.
func (v *verifier) devices() (all []*streams.Device) {
	for _, d := range v.place.Devices {
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// ranks returns the litmus tests of ranks: on each device, between the two of each pair, and among all. There are none
// where some device does not reach another.
func (v *verifier) ranks() (all []check) {
	if v.team.processes != nil {
		return nil
	}
	tests := litmus.Tests{Compiler: v.session.Compiler, Links: v.session.Links, Limit: waitLimit}
	devices := v.devices()
	for _, from := range devices {
		for _, to := range devices {
			if _, _, err := v.session.Links.Choose(p2p.Direct, from, to, p2p.MessageShape{}); err != nil {
				fmt.Fprintf(v.out, "left out: ranks: %v\n", err)
				return nil
			}
		}
	}
	puts := func(of string, some ...*streams.Device) {
		name := "ranks of " + of + ": puts at every alignment come whole before their notification, tags are counted apart"
		all = append(all, check{name, func(ctx context.Context) error {
			return errors.Join(tests.Puts(ctx, some...), tests.Counts(ctx, some...))
		}})
	}
	for i, d := range devices {
		puts(d.String(), d)
		for _, other := range devices[:i] {
			puts(fmt.Sprintf("%v and %v", other, d), other, d)
		}
	}
	among := fmt.Sprintf("ranks of all %d devices: ", len(devices))
	return append(all,
		check{among + "nobody leaves a barrier early, and what was stored before is seen", func(ctx context.Context) error { return tests.Barriers(ctx, devices...) }},
		check{among + "one gets what all put to it at once", func(ctx context.Context) error { return tests.AllToOne(ctx, devices...) }},
	)
}
