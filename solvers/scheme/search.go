package scheme

import (
	"slices"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// Search says among what the fastest scheme is searched, and by what its trials are remembered.
type Search struct {
	Links    *p2p.Links
	Compiler *kernels.Compiler
	Scheme   Scheme   // that all trials take; Auto, or none, for all but the baseline
	Path     p2p.Path // that all trials take; p2p.Auto for those that there are
	Driver   string   // version of the GPUs' driver
	Known    bool     // only among trials that are remembered

	// Ahead is what Ahead has begun for the search, which waits for it before the first trial; nil: Fastest begins it.
	Ahead *kernels.Ahead
	// Trying, where set, is called before each trial.
	Trying func(name Scheme, path p2p.Path)
	// Failed, where set, is told of a scheme whose kernels cannot be compiled. It is left out, unless all are.
	Failed func(name Scheme, path p2p.Path, err error)

	within time.Duration // that all trials may take, as searchTime; 0: searchTime
}

// candidates returns the schemes to try, those first that are mostly the fastest. The baseline
// never is.
func candidates() []Scheme {
	all := slices.DeleteFunc(All(), func(s Scheme) bool { return s == Baseline })
	slices.Reverse(all)
	return all
}

// paths returns the paths to try: where the choice is open those that are said to be, from the end
// of their list, and what links can do where one of them is not usable.
func (s Search) paths(step *Step) []p2p.Path {
	devices := step.placement().Devices
	if s.Path != p2p.Auto && s.Path != "" {
		return []p2p.Path{s.Path}
	}
	if len(devices) == 1 {
		return []p2p.Path{p2p.Direct}
	}
	for _, from := range devices {
		for _, to := range devices {
			if link := s.Links.Between(from, to); from != to && (link == nil || !link.Usable) {
				return []p2p.Path{p2p.Auto}
			}
		}
	}
	tried := slices.DeleteFunc(p2p.Paths(), func(path p2p.Path) bool { return !path.Traits().Tried })
	slices.Reverse(tried)
	return tried
}

// candidate is a scheme to try, with the plan of its exchanges.
type candidate struct {
	name Scheme
	path p2p.Path
	plan *Plan
}

// candidates returns what to try, in that order. Where processes share the grid all call it, and get the same.
func (s Search) candidates(step *Step) (all []candidate) {
	for _, path := range s.paths(step) {
		plan, err := step.Plan(s.Links, path)
		if Agreed(step.placement(), err) != nil {
			continue // there is no such path, or too little to exchange
		}
		names := candidates()
		if s.Scheme != "" && s.Scheme != Auto {
			names = []Scheme{s.Scheme}
		}
		for _, name := range names {
			c := candidate{name, path, plan}
			if len(names) == 1 || step.placement().Processes.IsAlone() || s.amongProcesses(step, &c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// amongProcesses reports whether a candidate can be tried over several processes. One that exchanges over a path of its
// own takes that within each of them, if all have it.
func (s Search) amongProcesses(step *Step, c *candidate) bool {
	needs, err := NeedsOf(c.name)
	if err != nil || !needs.Processes || needs.CheckPath(c.name, c.path) != nil {
		return false
	}
	if c.path == p2p.Auto && needs.Path != "" {
		c.path = needs.Path
		c.plan, err = step.Plan(s.Links, c.path)
		err = Agreed(step.placement(), err)
	}
	return err == nil
}
