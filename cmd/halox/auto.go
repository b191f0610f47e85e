package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// schemeTime is what a step takes by a scheme and a path.
type schemeTime struct {
	Scheme scheme.Scheme `json:"scheme"`
	Path   p2p.Path      `json:"path"`
	Step   time.Duration `json:"ns"`
}

func (t schemeTime) String() string {
	return fmt.Sprintf("%s by %s %s", t.Scheme, t.Path, p2p.Microseconds(t.Step))
}

// What the choice of a scheme may take.
const (
	autotuneTime = 10 * time.Millisecond // the intervals of one
	allTrials    = time.Second           // after which no other is tried
)

// choose finds the scheme for scheme auto, on GPUs the fastest of all by a trial run of
// each on these devices, which is remembered; and plans its messages. Host devices keep
// what scheme.Choose says.
func (w *setup) choose(ctx context.Context, notes io.Writer) error {
	if w.config.Exchange.Scheme != string(scheme.Auto) || w.machine.backend == streams.Host {
		return nil
	}
	if times, known := w.rememberedSchemes(); known && w.take(times) == nil {
		return nil
	}
	begin := time.Now()
	times, err := w.trySchemes(ctx)
	if err != nil || len(times) == 0 {
		return err
	}
	w.rememberSchemes(times)
	fmt.Fprintf(notes, "tried the schemes for %.2f s: %v\n", time.Since(begin).Seconds(), times)
	return w.take(times)
}

// take takes the fastest, if messages can be planned for it.
func (w *setup) take(times []schemeTime) error {
	plan, err := halo.NewPlan(w.place, w.links, times[0].Path, w.problem.Field())
	if err != nil {
		return err
	}
	w.plan, w.scheme, w.tried = plan, times[0].Scheme, times
	return nil
}

// trySchemes times the schemes over the paths that the config allows and that there
// are, and returns their times, the shortest first.
func (w *setup) trySchemes(ctx context.Context) (times []schemeTime, err error) {
	begin := time.Now()
	for _, path := range w.pathsToTry() {
		plan, err := halo.NewPlan(w.place, w.links, path, w.problem.Field())
		if err != nil {
			continue // there is no such path, or too little to exchange
		}
		for _, name := range schemesToTry() {
			if time.Since(begin) > allTrials && len(times) > 0 {
				break
			}
			o := solverOptions(w.config)
			o.Scheme = name
			step, err := solvers.Autotune(ctx, w.problem, plan, w.compiler, o, autotuneTime)
			if errors.Is(err, scheme.ErrUnsuited) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("try scheme %s by %s: %w", name, path, err)
			}
			times = append(times, schemeTime{name, path, step})
		}
	}
	slices.SortStableFunc(times, faster)
	return times, nil
}

// faster orders times, the shortest first.
func faster(a, b schemeTime) int { return cmp.Compare(a.Step, b.Step) }

// schemesToTry returns the schemes, those first that are mostly the fastest. The baseline
// never is.
func schemesToTry() []scheme.Scheme {
	all := slices.DeleteFunc(scheme.All(), func(s scheme.Scheme) bool { return s == scheme.Baseline })
	slices.Reverse(all)
	return all
}

// pathsToTry returns the paths that a scheme may take: where the config leaves it open
// those between GPUs, and through the host only where there are no others.
func (w *setup) pathsToTry() []p2p.Path {
	if wanted := p2p.Path(w.config.Exchange.Path); wanted != p2p.Auto {
		return []p2p.Path{wanted}
	}
	if len(w.devices) == 1 {
		return []p2p.Path{p2p.Direct}
	}
	for _, from := range w.devices {
		for _, to := range w.devices {
			if link := w.links.Between(from, to); from != to && (link == nil || !link.Usable) {
				return []p2p.Path{p2p.Auto}
			}
		}
	}
	return []p2p.Path{p2p.Direct, p2p.Peer}
}

// schemesEntry is where the times of a machine's schemes are kept.
func (w *setup) schemesEntry() cache.Entry {
	var all []string
	for _, d := range w.devices {
		all = append(all, d.Name, d.Arch)
	}
	machine := strings.Join(append(all, w.machine.driver(), version, builtFrom()), "|")
	return cache.At("").Entry(fmt.Sprintf("schemes-%.8x.json", sha256.Sum256([]byte(machine))))
}

// schemesKey names all else that the times depend on.
func (w *setup) schemesKey() string {
	p := w.problem
	walls := ""
	for _, wall := range p.Walls {
		walls += fmt.Sprint(int(wall.Kind))
		if wall.Kind == solvers.Dirichlet && wall.Value != nil && wall.Value.Uses("t") {
			walls += "t"
		}
	}
	checks := 0
	if o := solverOptions(w.config); o.Checks() {
		checks = int(o.CheckEvery)
	}
	return fmt.Sprintf("%v %v %s %+v %s %s %d", p.Grid.Size, w.cut.Parts, walls, p.Stencil, p.Real, w.config.Exchange.Path, checks)
}

// rememberedSchemes returns what was measured before.
func (w *setup) rememberedSchemes() (times []schemeTime, ok bool) {
	all := map[string][]schemeTime{}
	text, err := w.schemesEntry().Read()
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil, false
	}
	times = all[w.schemesKey()]
	return times, len(times) > 0 && !slices.ContainsFunc(times, w.untried) && slices.IsSortedFunc(times, faster)
}

// untried reports whether a time is none that trySchemes can have found.
func (w *setup) untried(t schemeTime) bool {
	return t.Step <= 0 || !slices.Contains(schemesToTry(), t.Scheme) || !slices.Contains(w.pathsToTry(), t.Path)
}

// rememberSchemes keeps times, if that is possible: they only save time.
func (w *setup) rememberSchemes(times []schemeTime) {
	_ = w.schemesEntry().Update(func(old []byte) ([]byte, error) {
		all := map[string][]schemeTime{}
		if json.Unmarshal(old, &all) != nil || all == nil { // there is no file, or it is damaged
			all = map[string][]schemeTime{}
		}
		all[w.schemesKey()] = times
		text, err := json.MarshalIndent(all, "", " ")
		return append(text, '\n'), err
	})
}
