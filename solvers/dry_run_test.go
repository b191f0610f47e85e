package solvers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// A dry run counts exactly the peak memory of a run with norms that reads its whole field, per device and
// pinned, and allocates nothing. A stencil of radius 2 with corners has different and more tables, and so
// have groups of steps.
func TestDryRunCountsMemory(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	type counted struct {
		p    *Problem
		cuts []domain.Vec
	}
	plain := []counted{
		{problem(t, []int{17, 12, 11}, domain.Float64, "dnddpp"), []domain.Vec{{1, 1, 1}, {1, 2, 2}}},
		{problem(t, []int{12, 9, 17}, domain.Float32, "ntdnpp"), []domain.Vec{{1, 1, 3}}},
		{problem(t, []int{23, 19}, domain.Float64, "ddpp"), []domain.Vec{{2, 2, 1}}},
		{problem(t, []int{40, 31}, domain.Float32, "ppnd"), []domain.Vec{{1, 3, 1}}},
	}
	var wide []counted
	for _, k := range stencil.Kinds(3) {
		p := of(t, problem(t, []int{13, 14, 15}, domain.Float64, "ddddpp"), k)
		wide = append(wide, counted{p, []domain.Vec{{1, 2, 1}}})
	}
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, all := range [][]counted{plain, wide} {
			cases := testdevices.Again(1, testdevices.Some(4, all))
			for i, c := range cases {
				for _, parts := range c.cuts {
					for j, h := range ways() {
						h.parts = parts
						if !unsuited(set, h.scheme, c.p) && testdevices.Turn(i+j, 2*len(cases), 2*len(cases)) { // each way once, in two runs
							t.Run(fmt.Sprintf("%v/%s/%d points/%v", c.p.Grid.Size, c.p.Element, c.p.Stencil.Points(), h),
								func(t *testing.T) { countedAsHeld(t, set, c.p, h) })
						}
					}
				}
			}
		}
		for _, h := range testdevices.Again(2, testdevices.Some(4, inGroups())) {
			steps := 4
			if h.parts = (domain.Vec{1, 2, 2}); h.scheme == scheme.Resident {
				steps = 2 // for which emulated GPUs have enough shared memory
			}
			t.Run("groups/"+h.String(), func(t *testing.T) { countedAsHeld(t, set, inGroupsOf(plain[0].p, steps), h) })
		}
	})
}

func countedAsHeld(t *testing.T, set *testdevices.Set, p *Problem, h how) {
	plan := planFor(t, set, p, h)
	place := plan.Stages[0].Placement
	o := h.options(scheme.Options{Steps: 5, CheckEvery: 2, History: true})
	held(place)
	counted, err := DryRun(t.Context(), p, plan, set.Compiler, o)
	if errors.Is(err, scheme.ErrUnsuited) {
		t.Skip("SKIPPED: ", err)
	}
	succeeds(t, err)
	for rank, most := range held(place) {
		if most != (streams.Held{}) {
			t.Errorf("the dry run took %+v of %v", most, place.Devices[rank])
		}
	}
	s := must(New(t.Context(), p, plan, set.Compiler))(t)
	must(s.Run(t.Context(), o))(t)
	read(t, s)
	for rank, most := range held(place) {
		c := counted[rank]
		if want := (streams.Held{Memory: c.Variables + c.Extra, Pinned: c.Pinned}); c.Device != place.Devices[rank] || most != want || c.Variables <= 0 {
			t.Errorf("%v held %+v; counted %+v", place.Devices[rank], most, c)
		}
	}
	succeeds(t, s.Close())
	for rank, d := range place.Devices {
		if now := d.Held(); now != (streams.Held{}) {
			t.Errorf("rank %d: %+v left", rank, now)
		}
	}
}

// held returns the peak memory of devices since the previous call.
func held(p *halo.Placement) (all []streams.Held) {
	for _, d := range p.Devices {
		most := d.Peak()
		all = append(all, most)
	}
	return all
}
