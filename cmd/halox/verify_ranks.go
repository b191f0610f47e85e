package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo/ranks"
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
	devices := v.devices()
	if n := len(devices); n > ranks.MaxDevices {
		fmt.Fprintf(v.out, "left out: all but the first %d of %d devices; ranks of more are not possible\n", ranks.MaxDevices, n)
		devices = devices[:ranks.MaxDevices]
	}
	done, err := tests.Soak(ctx, s.long, devices...)
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
// where some device does not reach another, and none among all where these are too many. Of several processes they are among
// all devices.
func (v *verifier) ranks() (all []check) {
	if !v.team.processes.IsAlone() {
		return v.ranksOfProcesses()
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
	if n := len(devices); n > ranks.MaxDevices {
		fmt.Fprintf(v.out, "left out: ranks of all %d devices; up to %d are possible\n", n, ranks.MaxDevices)
		return all
	}
	return append(all, among(tests, fmt.Sprintf("ranks of all %d devices: ", len(devices)), devices)...)
}

// among returns the tests in which all ranks of some devices take part.
func among(tests litmus.Tests, name string, devices []*streams.Device) []check {
	return []check{
		{name + "nobody leaves a barrier early, and what was stored before is seen", func(ctx context.Context) error { return tests.Barriers(ctx, devices...) }},
		{name + "one gets what all put to it at once", func(ctx context.Context) error { return tests.AllToOne(ctx, devices...) }},
	}
}

// ranksOfProcesses returns the tests among the devices of all processes, which end them together: none is given up when the command
// is interrupted.
func (v *verifier) ranksOfProcesses() (together []check) {
	p, devices, n := v.team.processes, v.session.Devices, 0
	for _, count := range v.session.Counts() {
		n += count
	}
	if n > ranks.MaxDevices {
		fmt.Fprintf(v.out, "left out: ranks: %d devices of all processes; up to %d are possible\n", n, ranks.MaxDevices)
		return nil
	}
	tests := litmus.Tests{Compiler: v.session.Compiler, Links: v.session.Links, Processes: p, Limit: waitLimit}
	name := fmt.Sprintf("ranks of %d devices of %s: ", n, manyProcesses(p))
	all := append(among(tests, name, devices), check{name + "puts at every alignment come whole before their notification, tags are counted apart", func(ctx context.Context) error {
		return errors.Join(tests.Puts(ctx, devices...), tests.Counts(ctx, devices...))
	}})
	for _, c := range all {
		together = append(together, check{c.name, func(ctx context.Context) error { return c.run(context.WithoutCancel(ctx)) }})
	}
	return together
}
