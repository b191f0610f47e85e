package scheme

import (
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/halo"
)

// What each stage was tuned to is told once, with the time of all devices and phases.
func TestTuning(t *testing.T) {
	tuned := func(name string, x, layers int, took time.Duration) stageLaunches {
		return stageLaunches{tuning: Tuning{name, [2]int{x, 4}, layers, took}}
	}
	x := &Runner{
		step: &Step{Stages: make([]Stage, 3)}, local: []int{0, 1},
		subdomains: []*subdomain{
			{stages: [][]stageLaunches{{{}, {}, tuned("reaction", 64, 2, 5)}, {{}, {}, tuned("reaction", 64, 2, 1)}}}, // an interior that is empty
			{stages: [][]stageLaunches{{tuned("diffusion", 32, 8, 7), {}, tuned("reaction", 16, 2, 3)}, {tuned("diffusion", 32, 8, 2), {}, tuned("reaction", 16, 2, 1)}}},
		},
	}
	want := []Tuning{{"diffusion", [2]int{32, 4}, 8, 9}, {"reaction", [2]int{64, 4}, 2, 10}}
	if got := x.Tuning(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// A step whose sweeps may be tried on the field that it writes reads nothing there before.
func TestWhatAStepKeeps(t *testing.T) {
	v, other := &Variable{levels: make([]*halo.Field, 2)}, &Variable{levels: make([]*halo.Field, 2)}
	three := &Variable{levels: make([]*halo.Field, 3)}
	at := func(v *Variable, level int) Access { return Access{Variable: v, Level: level} }
	stage := func(reads ...Access) Stage { return Stage{Reads: reads} }
	writing := func(v *Variable, reads ...Access) Stage { return Stage{Reads: reads, Writes: []Access{at(v, 1)}} }
	for name, c := range map[string]struct {
		of     *Variable
		stages []Stage
		keeps  bool
	}{
		"newest alone":             {v, []Stage{writing(v, at(v, 0))}, true},
		"newest of another":        {v, []Stage{writing(v, at(other, 1))}, true},
		"after it is written":      {v, []Stage{writing(v, at(v, 0)), writing(other, at(v, 1))}, true},
		"before it is written":     {v, []Stage{writing(other, at(v, 1)), writing(v, at(v, 0))}, false},
		"where it is written":      {v, []Stage{writing(v, at(v, 1))}, false},
		"the level before, of two": {v, []Stage{writing(v, at(v, 0), at(v, -1))}, false},
		"the level before":         {three, []Stage{writing(three, at(three, 0), at(three, -1))}, true},
		"before, of three":         {three, []Stage{stage(at(three, 1)), writing(three, at(three, 0))}, false},
	} {
		if got := (&Step{Stages: c.stages}).keeps(c.of); got != c.keeps {
			t.Errorf("%s: %t", name, got)
		}
	}
}
