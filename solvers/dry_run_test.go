package solvers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// What a dry run counts is what a run with norms, and with a look at all of its field, held at most, byte for
// byte, of each device and of pinned memory; and nothing is allocated to find out.
func TestADryRunCountsWhatARunHolds(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		type counted struct {
			size  []int
			real  kernels.Real
			kinds string
			cuts  []domain.Vec
		}
		cases := testdevices.Again(1, testdevices.Some(4, []counted{
			{[]int{17, 12, 11}, kernels.Float64, "dnddpp", []domain.Vec{{1, 1, 1}, {1, 2, 2}}},
			{[]int{12, 9, 17}, kernels.Float32, "ntdnpp", []domain.Vec{{1, 1, 3}}},
			{[]int{23, 19}, kernels.Float64, "ddpp", []domain.Vec{{2, 2, 1}}},
			{[]int{40, 31}, kernels.Float32, "ppnd", []domain.Vec{{1, 3, 1}}},
		}))
		for i, c := range cases {
			p := problem(t, c.size, c.real, c.kinds)
			for _, parts := range c.cuts {
				for j, h := range ways() {
					h.parts = parts
					if !unsuited(h.scheme, p) && testdevices.Turn(i+j, 2*len(cases), 2*len(cases)) { // each way once, in two runs
						t.Run(fmt.Sprintf("%v/%s/%s/%v", c.size, c.real, c.kinds, h), func(t *testing.T) { countedAsHeld(t, set, p, h) })
					}
				}
			}
		}
	})
}

// A stencil that reaches corners and two layers has other tables, and more.
func TestADryRunCountsWideStencils(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		kinds := testdevices.Again(1, testdevices.Some(4, stencil.Kinds(3)))
		for i, k := range kinds {
			p := of(t, problem(t, []int{13, 14, 15}, kernels.Float64, "ddddpp"), k)
			for j, h := range ways() {
				if h.parts = (domain.Vec{1, 2, 1}); h.scheme != Baseline && !unsuited(h.scheme, p) && testdevices.Turn(i+j, 2*len(kinds), 2*len(kinds)) { // each way once, in two runs
					t.Run(fmt.Sprintf("%v/%v", k, h), func(t *testing.T) { countedAsHeld(t, set, p, h) })
				}
			}
		}
	})
}

func countedAsHeld(t *testing.T, set *testdevices.Set, p *Problem, h how) {
	cut, err := domain.Decompose(p.Grid, h.parts)
	if err != nil {
		t.Fatal(err)
	}
	if len(cut.Subdomains) > len(set.Devices) {
		t.Skip("SKIPPED: too few devices")
	}
	place, err := halo.Place(cut, set.Devices[:len(cut.Subdomains)])
	if err != nil {
		t.Fatal(err)
	}
	plan, err := halo.NewPlan(place, set.Links, h.path, p.Field())
	if err != nil {
		t.Fatal(err)
	}
	o := h.options(Options{Steps: 5, CheckEvery: 2, History: true})
	held(place)
	counted, err := DryRun(t.Context(), p, plan, set.Compiler, o)
	if errors.Is(err, scheme.ErrUnsuited) {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for rank, most := range held(place) {
		if most != (streams.Held{}) {
			t.Errorf("the dry run took %+v of %v", most, place.Devices[rank])
		}
	}
	s, err := New(t.Context(), p, plan, set.Compiler)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	read(t, s)
	for rank, most := range held(place) {
		c := counted[rank]
		if want := (streams.Held{Memory: c.Variables + c.Extra, Pinned: c.Pinned}); c.Device != place.Devices[rank] || most != want || c.Variables <= 0 {
			t.Errorf("%v held %+v; counted %+v", place.Devices[rank], most, c)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for rank, d := range place.Devices {
		if now := d.Held(); now != (streams.Held{}) {
			t.Errorf("rank %d: %+v left", rank, now)
		}
	}
}

// held returns the most that devices held since it was asked before.
func held(p *halo.Placement) (all []streams.Held) {
	for _, d := range p.Devices {
		most := d.Peak()
		all = append(all, most)
	}
	return all
}
