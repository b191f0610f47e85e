package scheme

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Trial is what a step takes by a scheme and a path.
type Trial struct {
	Scheme Scheme        `json:"scheme"`
	Path   p2p.Path      `json:"path"`
	Step   time.Duration `json:"ns"`
}

// String is "fused by direct 5.4 us".
func (t Trial) String() string {
	return fmt.Sprintf("%s by %s %s", t.Scheme, t.Path, p2p.Microseconds(t.Step))
}

// Search says among what the fastest scheme is searched, and by what its trials are remembered.
type Search struct {
	Links    *p2p.Links
	Compiler *kernels.Compiler
	Path     p2p.Path // that all trials take; p2p.Auto for those that there are
	Driver   string   // version of the GPUs' driver
	Program  string   // what built the program
	Known    bool     // only among trials that are remembered
}

// What a search may take.
const (
	trialTime  = 10 * time.Millisecond // the intervals of one trial
	searchTime = time.Second           // after which no other is begun
)

// Fastest returns the trials of a step, the shortest first: each scheme but the baseline, over each
// path, runs the step for some milliseconds, with norms as often as the options say, unless there is
// too little memory for what it takes. The variables of the step hold something else then. What was
// tried is remembered in the user's cache, for steps that do the same on such devices, and not tried
// again: known says so. On devices that work on
// cores of the host nothing is tried, and there are no trials. See Step.Name for steps with kernels of the caller's own.
func Fastest(ctx context.Context, step *Step, s Search, o Options) (trials []Trial, known bool, err error) {
	if err := step.Check(); err != nil {
		return nil, false, err
	}
	if s.Compiler == nil {
		return nil, false, errors.New("scheme: a search without a compiler (nil)")
	}
	if step.placement().Devices[0].HostCores {
		return nil, false, nil
	}
	m := s.memory(step, o)
	if trials, ok := m.recall(s.paths(step)); ok {
		if _, err := step.Plan(s.Links, trials[0].Path); err == nil {
			return trials, true, nil
		}
	}
	if s.Known {
		return nil, false, nil
	}
	if trials, err = s.try(ctx, step, o); err != nil || len(trials) == 0 {
		return nil, false, err
	}
	m.keep(trials)
	return trials, false, nil
}

// try times all schemes.
func (s Search) try(ctx context.Context, step *Step, o Options) (trials []Trial, err error) {
	begin := time.Now()
	for _, path := range s.paths(step) {
		plan, err := step.Plan(s.Links, path)
		if err != nil {
			continue // there is no such path, or too little to exchange
		}
		for _, name := range candidates() {
			if time.Since(begin) > searchTime && len(trials) > 0 {
				break
			}
			o.Scheme = name
			took := time.Duration(0)
			err := fits(ctx, step, plan, s.Compiler, o)
			if err == nil {
				took, err = autotune(ctx, step, plan, s.Compiler, o, trialTime)
			}
			if errors.Is(err, ErrUnsuited) || errors.Is(err, streams.ErrOutOfMemory) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("try scheme %s by %s: %w", name, path, err)
			}
			trials = append(trials, Trial{name, path, took})
		}
	}
	slices.SortStableFunc(trials, faster)
	return trials, nil
}

// faster orders trials, the shortest first.
func faster(a, b Trial) int { return cmp.Compare(a.Step, b.Step) }

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

// memory is where the trials of a step are kept: an entry for the machine, and in it a key for all
// else that they depend on. Without a key nothing is kept.
type memory struct {
	entry cache.Entry
	key   string
	many  bool // devices, which exchange
}

func (s Search) memory(step *Step, o Options) memory {
	var all []string
	for _, d := range step.placement().Devices {
		all = append(all, d.Name, d.Arch)
	}
	machine := strings.Join(append(all, s.Driver, s.Program), "|")
	m := memory{many: len(step.placement().Devices) > 1, entry: cache.At("").Entry(fmt.Sprintf("schemes-%.8x.json", sha256.Sum256([]byte(machine))))}
	if text, ok := step.describe(); ok {
		every := int64(0)
		if o.checks() {
			every = o.CheckEvery
		}
		m.key = fmt.Sprintf("%.16x", sha256.Sum256([]byte(fmt.Sprintf("%s path %s norms every %d", text, s.Path, every))))
	}
	return m
}

// describe names all of a step that its time depends on. ok is false where a stage has kernels of
// the caller's own and the step has no name.
func (s *Step) describe() (text string, ok bool) {
	var b strings.Builder
	p, variables := s.placement(), s.variables()
	fmt.Fprintf(&b, "%q %v %v %v %s", s.Name, p.Grid.Size, p.Grid.Periodic, p.Parts, s.Sums)
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

// recall returns the trials that are kept, if they can have been found by a search over these
// paths.
func (m memory) recall(paths []p2p.Path) (trials []Trial, ok bool) {
	text, err := m.entry.Read()
	if m.key == "" || err != nil {
		return nil, false
	}
	return trialsIn(text, m.key, paths, m.many)
}

// trialsIn returns what an entry holds under a key, of trials on many devices or on one.
func trialsIn(text []byte, key string, paths []p2p.Path, many bool) (trials []Trial, ok bool) {
	all := map[string][]Trial{}
	if json.Unmarshal(text, &all) != nil {
		return nil, false
	}
	trials = all[key]
	impossible := func(t Trial) bool {
		needs, err := NeedsOf(t.Scheme)
		if err != nil || many && needs.CheckPath(t.Scheme, t.Path) != nil {
			return true
		}
		return t.Step <= 0 || !slices.Contains(candidates(), t.Scheme) || !slices.Contains(paths, t.Path)
	}
	return trials, len(trials) > 0 && !slices.ContainsFunc(trials, impossible) && slices.IsSortedFunc(trials, faster)
}

// keep keeps trials, if that is possible: they only save time.
func (m memory) keep(trials []Trial) {
	if m.key == "" {
		return
	}
	_ = m.entry.Update(func(old []byte) ([]byte, error) {
		all := map[string][]Trial{}
		if json.Unmarshal(old, &all) != nil || all == nil { // there is no file, or it is damaged
			all = map[string][]Trial{}
		}
		all[m.key] = trials
		text, err := json.MarshalIndent(all, "", " ")
		return append(text, '\n'), err
	})
}
