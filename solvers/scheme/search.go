package scheme

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Search selects the schemes and paths of a search for the fastest, and has what its trials depend on.
type Search struct {
	Links    *p2p.Links        // links between the devices
	Compiler *kernels.Compiler // compiler of kernels
	Scheme   Scheme            // scheme of all trials; Auto or "": all schemes
	Path     p2p.Path          // path of all trials; p2p.Auto: all usable paths
	Driver   string            // version of the GPU driver
	Known    bool              // use only cached trials; default false

	// Begun is when the search began that this one is part of; zero means now. Two and a half seconds later
	// it begins no trial, and stops the one in progress.
	Begun time.Time
	// Ahead is the result of the function Ahead for the search; nil if Fastest should start it. Trials wait
	// for it.
	Ahead *kernels.Ahead
	// Trying, if set, is called before each trial.
	Trying func(name Scheme, path p2p.Path)
	// Failed, if set, is called for a scheme whose kernels cannot be compiled. It is skipped, unless all are.
	Failed func(name Scheme, path p2p.Path, err error)

	clock clock // default: realClock
}

// clock is the clock of a search. Tests replace it.
type clock struct {
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
}

var realClock = clock{time.Now, time.After}

// found is the result of searches for a step so far.
type found struct {
	Trials  []Trial `json:"trials"`            // the fastest first
	Partial bool    `json:"partial,omitempty"` // the search ended before all were tried

	incomplete bool // without schemes that do not compile: not saved
}

// likely is the order in which schemes are tried: those that are usually the fastest, or close to it, first.
var likely = [...]Scheme{Fused, Blocked, Resident, Assisted, TwoStream, Baseline, Graph, Ranks}

// candidates returns the schemes to try, in that order. Other schemes come before them.
func candidates() []Scheme {
	all := All()
	place := func(s Scheme) int { return slices.Index(likely[:], s) }
	slices.SortStableFunc(all, func(a, b Scheme) int { return cmp.Compare(place(a), place(b)) })
	return all
}

// paths returns the paths to try: for Auto those that p2p lists, from the end of the list, and those that
// links support if one of them is not usable.
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
	name  Scheme
	path  p2p.Path
	plan  *Plan
	ready func() bool // reports whether its kernels are compiled, see ask
}

// candidates returns what to try, in that order. If processes share the grid, all call it and get the same.
func (s Search) candidates(step *Step) (all []candidate) {
	for _, path := range s.paths(step) {
		plan, err := step.Plan(s.Links, path)
		if Agreed(step.placement(), err) != nil {
			continue // the path is unavailable, or too little is exchanged
		}
		names := candidates()
		if s.Scheme != "" && s.Scheme != Auto {
			names = []Scheme{s.Scheme}
		}
		for _, name := range names {
			c := candidate{name: name, path: path, plan: plan}
			if len(names) == 1 || step.placement().Processes.IsAlone() || s.amongProcesses(step, &c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// amongProcesses reports whether a candidate can be tried over several processes. A scheme with its own path
// uses it within each process, if all have it.
func (s Search) amongProcesses(step *Step, c *candidate) bool {
	needs := c.name.Needs()
	if !needs.Processes || needs.CheckPath(c.name, c.path) != nil {
		return false
	}
	var err error
	if c.path == p2p.Auto && needs.Path != "" {
		c.path = needs.Path
		c.plan, err = step.Plan(s.Links, c.path)
		err = Agreed(step.placement(), err)
	}
	return err == nil
}

// Agreed returns the worst result of a trial of all processes that share the grid, on all of them: an error
// that wraps ErrUnsuited, streams.ErrOutOfMemory or kernels.ErrNotCompiled on one does so on all. All
// processes call it, and they agree also in a dry run.
func Agreed(p *halo.Placement, mine error) error {
	if p == nil {
		return mine
	}
	return p.Processes.Agree(context.Background(), "scheme: choose together", mine,
		ErrUnsuited, streams.ErrOutOfMemory, kernels.ErrNotCompiled)
}

// isFirst reports whether this process is rank 0, or the only one.
func isFirst(p *halo.Placement) bool { return p.Processes.Rank == 0 }

// faster orders trials, the fastest first.
func faster(a, b Trial) int { return cmp.Compare(a.Step, b.Step) }

// searchKey is what trials depend on.
type searchKey struct {
	Devices   []string
	Driver    string
	Processes string
	Program   string // version
	Step      string
	Scheme    Scheme
	Path      p2p.Path
	Every     int64 // steps between norms; 0: none
}

// memory returns the store of the trials of a step, which discards them for a step that cannot be described.
// Its trials were measured by a search over the same paths.
func (s Search) memory(step *Step, o Options) (m cache.Store[found]) {
	text, ok := step.describe()
	if !ok {
		return m
	}
	key := searchKey{Driver: s.Driver, Program: programVersion(), Step: text, Path: s.Path}
	place := step.placement()
	for _, d := range place.Devices {
		if d != nil { // nil if owned by another process
			key.Devices = append(key.Devices, d.Name, d.Arch)
		}
	}
	if p := place.Processes; !p.IsAlone() {
		key.Processes = fmt.Sprint(p.Nodes, p.Library)
	}
	if s.Scheme != Auto {
		key.Scheme = s.Scheme
	}
	if o.checks() {
		key.Every = o.CheckEvery
	}
	paths, many := s.paths(step), len(place.Devices) > 1
	return cache.Remember(cache.At(""), "schemes", key, func(f found) bool {
		return validTrials(f.Trials, paths, many)
	})
}

// describe returns everything that the time of a step depends on. ok is false if a stage has user kernels and
// the step has no name.
func (s *Step) describe() (text string, ok bool) {
	var b strings.Builder
	p, variables := s.placement(), s.variables()
	fmt.Fprintf(&b, "%q %v %v %v %s", s.Name, p.Grid.Size, p.Grid.Periodic, p.Parts, s.Sums)
	if s.group() > 1 {
		fmt.Fprintf(&b, " groups of %d", s.group())
	}
	for _, v := range variables {
		spec := v.Spec
		spec.Name = ""
		fmt.Fprintf(&b, " variable %+v levels %d", spec, v.Levels())
		for _, c := range v.Boundary {
			fmt.Fprintf(&b, " %s %v %v", c.Kind, c.Odd, c.Profile != nil)
		}
	}
	for _, st := range s.Stages {
		if st.Kernels != nil && s.Name == "" {
			return "", false
		}
		fmt.Fprintf(&b, " stage %q", st.Name)
		if st.Point != nil {
			b.WriteString(" " + st.Point.Key())
		}
		for _, a := range append(slices.Clone(st.Reads), st.Writes...) {
			fmt.Fprintf(&b, " %d %d %v", slices.Index(variables, a.Variable), a.Level, a.Reads)
		}
	}
	fmt.Fprintf(&b, " measured %d", len(s.Measured))
	return b.String(), true
}

// validTrials reports whether a search over these paths can have found the trials, on many devices or on one.
func validTrials(trials []Trial, paths []p2p.Path, many bool) bool {
	impossible := func(t Trial) bool {
		needs := t.Scheme.Needs()
		own := t.Path == needs.Path && slices.Contains(paths, p2p.Auto) // see Search.amongProcesses
		return t.Step <= 0 || !slices.Contains(candidates(), t.Scheme) || !own && !slices.Contains(paths, t.Path) ||
			many && needs.CheckPath(t.Scheme, t.Path) != nil
	}
	return len(trials) > 0 && !slices.ContainsFunc(trials, impossible) && slices.IsSortedFunc(trials, faster)
}

// programVersion returns the version of the program, "" if unknown.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version + " " + s.Value
		}
	}
	return info.Main.Version
}
