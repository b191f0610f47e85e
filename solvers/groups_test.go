package solvers

import (
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// Trials of the exchange interval, on emulated GPUs, cover all intervals that fit, are cached, and are
// repeated if one of them is missing. A scheme without groups is tried without.
func TestFastestGroup(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	t.Setenv("HALOX_CACHE", t.TempDir())
	set := testdevices.CPUBesideThreads(t, 2)
	p := problem(t, []int{12, 8, 13}, domain.Float64, "dnddnn")
	place := placed(t, set, p, domain.Vec{1, 1, 2})
	for name, want := range map[scheme.Scheme][]int{scheme.TwoStream: {1, 2, 4}, scheme.Resident: {1, 2, 4}, scheme.Ranks: {1}} {
		search := scheme.Search{Links: set.Links, Compiler: set.Compiler, Scheme: name, Path: p2p.Direct}
		search.Begun = time.Now().Add(24 * time.Hour) // no time limit
		known := search
		known.Known = true
		if trials, _, err := eachGroup(t.Context(), p, place, known, scheme.Options{}, recallTrials); err != nil || len(trials) > 0 {
			t.Errorf("%s: cached before it was tried: %v, %v", name, trials, err)
		}
		trials, all, err := eachGroup(t.Context(), p, place, search, scheme.Options{}, Fastest)
		if err != nil || all {
			t.Fatalf("%s: %v, known %v", name, err, all)
		}
		var groups []int
		for i, one := range trials {
			if groups = append(groups, one.Group); one.Scheme != name || i > 0 && one.Step < trials[i-1].Step {
				t.Errorf("%s: trials %v", name, trials)
			}
		}
		if slices.Sort(groups); !slices.Equal(groups, want) {
			t.Errorf("%s: tried %v, not %v", name, groups, want)
		}
		again, _, err := eachGroup(t.Context(), p, place, known, scheme.Options{}, recallTrials)
		if err != nil || !slices.Equal(again, trials) {
			t.Errorf("%s: cached %v, want %v: %v", name, again, trials, err)
		}
	}
}

// On GPUs that do not support tiles with ghosts this wide, scheme resident rejects the step with the reason.
func TestResidentGroupsThatDoNotFit(t *testing.T) {
	set := testdevices.CPU(t, 2)
	for name, c := range map[string]struct {
		p    *Problem
		says string
	}{
		"a large grid":  {problem(t, []int{60, 60, 60}, domain.Float64, "dddddd"), "must fit in the shared memory"},
		"another shape": {of(t, problem(t, []int{19, 16, 17}, domain.Float32, "dddddd"), stencil.Kind{Points: 13, Shape: stencil.StarShape}), "star of radius 1"},
	} {
		h := how{scheme: scheme.Resident, path: p2p.Direct, parts: domain.Vec{1, 1, 2}}
		s := prepare(t, set, inGroupsOf(c.p, 2), h)
		_, err := s.Run(t.Context(), h.options(scheme.Options{Steps: 3}))
		t.Run(name, func(t *testing.T) { wants(t, err, scheme.ErrUnsuited, c.says) })
	}
}
