package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo/ranks/litmus"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// ranks returns the litmus tests of ranks: on each device, between the two of each pair, and among all. There are none
// where some device does not reach another.
func (v *verifier) ranks() (all []check) {
	tests := litmus.Tests{Compiler: v.session.Compiler, Links: v.session.Links, Limit: waitLimit}
	var devices []*streams.Device
	for _, d := range v.place.Devices {
		if !slices.Contains(devices, d) {
			devices = append(devices, d)
		}
	}
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
