package scheme

import (
	"slices"
	"testing"
	"time"
)

// What each stage was tuned to is told once, with the time of all devices and phases.
func TestTuning(t *testing.T) {
	tuned := func(name string, x, layers int, took time.Duration) stageLaunches {
		return stageLaunches{tuning: Tuning{name, [2]int{x, 4}, layers, took}}
	}
	x := &Runner{
		step: &Step{Stages: make([]Stage, 3)},
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
