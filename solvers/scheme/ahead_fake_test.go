//go:build linux && cgo

package scheme

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// slowSearch returns a search over two GPUs of a fake driver, and a step on them, with kernels that are slow
// to compile. The search may take any time.
func slowSearch(t *testing.T, takes time.Duration, refuses string) (Search, *Step, testdevices.Slow) {
	t.Helper()
	t.Setenv("HALOX_CACHE", t.TempDir())
	session, _, _ := fakeSession(t, 1<<30)
	slow := testdevices.SlowNVRTC(t, takes, refuses)
	c := kernels.NewCompiler(kernels.Options{NVRTC: slow.Library, Cache: t.TempDir()})
	step := newStep(t, &testdevices.Set{Devices: session.Devices}, 2, 16)
	return Search{Links: session.Links, Compiler: c, Path: p2p.Auto, clock: noTime}, step, slow
}

// sortedPrograms returns the compiled programs, sorted.
func sortedPrograms(t *testing.T, slow testdevices.Slow) []string {
	t.Helper()
	names, _ := slow.Compiled(t)
	slices.Sort(names)
	return names
}

// All schemes are tried, over all paths, even if compiling their kernels one by one takes longer than a
// search may; they are compiled in parallel, and nothing else is.
func TestAllSchemesAreTriedWithSlowCompiler(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	const takes = 400 * time.Millisecond
	s, step, slow := slowSearch(t, takes, "")
	var tried []string
	compiled := 0 // before the first trial
	s.Trying = func(name Scheme, path p2p.Path) {
		begun, done := s.Compiler.Compiled()
		if begun != done {
			t.Errorf("scheme %s is tried while %d programs are being compiled", name, begun-done)
		}
		if compiled = cmp.Or(compiled, begun); compiled != begun {
			t.Errorf("before scheme %s is tried, %d programs were compiled for a trial", name, begun-compiled)
		}
		tried = append(tried, string(name)+" "+string(path))
	}
	trials, known, err := Fastest(t.Context(), step, s, Options{Limit: testLimit})
	if err != nil || known || len(trials) != 2*len(candidates())-5 || len(tried) != 2*len(candidates()) { // three need path direct, one path staged
		t.Errorf("%v, known %t, %v; tried %v", trials, known, err, tried)
	}
	names, together := slow.Compiled(t)
	if len(names) < 6 || len(names) != compiled || together < 2 || time.Duration(len(names))*takes < 2*time.Second {
		t.Errorf("%d in parallel of %v, %d before the first trial", together, names, compiled)
	}

	s, step, slow = slowSearch(t, 0, "")
	s.Ahead = s.Compiler.Ahead(t.Context()) // compiles nothing: the trials compile what they need
	if _, _, err := Fastest(t.Context(), step, s, Options{Limit: testLimit}); err != nil {
		t.Error(err)
	}
	if slices.Sort(names); !slices.Equal(names, sortedPrograms(t, slow)) {
		t.Errorf("compiled %v, and needed %v", names, sortedPrograms(t, slow))
	}
}

// For a named scheme, and for a cached fastest one, only its own kernels are compiled.
func TestAheadOfOneScheme(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	for _, one := range []Trial{{Assisted, p2p.Peer, time.Microsecond, 0}, {Resident, p2p.Direct, time.Microsecond, 0}, {Graph, p2p.Direct, time.Microsecond, 0}, {Ranks, p2p.Direct, time.Microsecond, 0}} {
		s, step, slow := slowSearch(t, 0, "")
		plan := must(step.Plan(s.Links, one.Path))(t)
		o := Options{Scheme: one.Scheme, Limit: testLimit}
		if one.Scheme == Ranks {
			o.CheckEvery = 1 // its norms have kernels of their own
		}
		must(autotune(t.Context(), t.Context(), step, plan, s.Compiler, o, time.Millisecond))(t)
		want := sortedPrograms(t, slow)
		for name, scheme := range map[string]Scheme{"named": one.Scheme, "remembered": Auto} {
			s, step, slow := slowSearch(t, 0, "")
			if o.Scheme = scheme; name == "named" {
				s.Path = one.Path
			} else {
				succeeds(t, s.memory(step, o).Put(found{Trials: []Trial{one}}))
			}
			Ahead(t.Context(), step, s, o).Wait(nil)
			if got := sortedPrograms(t, slow); !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("%s %s by %s: compiled %v, not %v", name, one.Scheme, one.Path, got, want)
			}
		}
	}
}

// A scheme whose kernels do not compile is skipped, and the results of the search are not saved. If none
// compiles, the error says so.
func TestSchemeThatDoesNotCompile(t *testing.T) {
	s, step, _ := slowSearch(t, 0, "tiles.cu")
	var failed []Scheme
	s.Failed = func(name Scheme, _ p2p.Path, err error) {
		if !errors.Is(err, kernels.ErrNotCompiled) || !strings.Contains(err.Error(), "kernels: compile tiles.cu") {
			t.Errorf("scheme %s: %v", name, err)
		}
		failed = append(failed, name)
	}
	trials, _, err := Fastest(t.Context(), step, s, Options{Limit: testLimit})
	if err != nil || len(trials) != 2*len(candidates())-6 || !slices.Equal(failed, []Scheme{Resident}) {
		t.Errorf("%v, %v; left out %v", trials, err, failed)
	}
	if _, err := s.memory(step, Options{}).Get(); err == nil {
		t.Error("an incomplete search is saved")
	}
	s, step, _ = slowSearch(t, 0, "point.cu")
	if trials, _, err := Fastest(t.Context(), step, s, Options{Limit: testLimit}); len(trials) > 0 || !errors.Is(err, kernels.ErrNotCompiled) || !strings.HasPrefix(err.Error(), "try scheme ") {
		t.Errorf("%v, %v", trials, err)
	}
}

// A search that reaches its limit returns what it has found, at least one trial, and the next one tries the
// rest. A search that is part of a late one tries nothing.
func TestLateSearches(t *testing.T) {
	search, step, _ := slowSearch(t, 0, "")
	another := newStepOf(t, step.placement().Devices, []int{12, 14}, stencil.Kind{Points: 5, Shape: stencil.StarShape})
	var tried []string
	for _, most := range []int{1, 3, 100} {
		now, before := noTime.now(), len(tried)
		s := search
		s.clock.now = func() time.Time { return now }
		s.Trying = func(name Scheme, path p2p.Path) {
			if tried = append(tried, string(name)+" "+string(path)); len(tried)-before >= most {
				now = now.Add(time.Hour)
			}
		}
		trials, known, err := Fastest(t.Context(), step, s, Options{Limit: testLimit})
		if err != nil || known || len(trials) < 1 || len(trials) > len(tried) || len(tried)-before > most {
			t.Errorf("at most %d: %v of %v, known %v, %v", most, trials, tried, known, err)
		}
		s.Begun = now.Add(-time.Minute)
		if trials, _, err := Fastest(t.Context(), another, s, Options{Limit: testLimit}); len(trials) > 0 || err != nil {
			t.Errorf("after that: %v, %v", trials, err)
		}
		s.Known, s.Begun = true, time.Time{}
		if trials, known, err := Fastest(t.Context(), step, s, Options{Limit: testLimit}); known != (most == 100) || err != nil {
			t.Errorf("at most %d: cached %v, %v", most, trials, err)
		}
	}
	// That no more kernels are compiled in the time of a search ends them.
	for _, most := range []int{1, 0} {
		var passed atomic.Int64
		s := search
		s.clock.now = func() time.Time { return noTime.now().Add(time.Duration(passed.Load())) }
		s.Trying = func(Scheme, p2p.Path) { passed.Store(int64(time.Hour)) }
		if most == 0 {
			s.clock.after = func(d time.Duration) <-chan time.Time { passed.Store(int64(time.Hour)); return noTime.after(d) }
		}
		if trials, known, err := Fastest(t.Context(), another, s, Options{Limit: testLimit}); len(trials) != 1 || known || err != nil {
			t.Errorf("at most %d more: %v, known %v, %v", most, trials, known, err)
		}
	}
	if trials, known, err := Fastest(t.Context(), another, search, Options{Limit: testLimit}); len(trials) != 1 || !known || err != nil {
		t.Errorf("after a search that waited: %v, known %v, %v", trials, known, err)
	}
	if all := 2 * len(candidates()); tried[0] != "fused direct" || len(slices.Compact(slices.Sorted(slices.Values(tried)))) != all {
		t.Errorf("tried %v of %d", tried, all)
	}
}

// A search that stops waiting for kernels tries the schemes that are ready, and then the others.
func TestSchemesAreTriedWhileOthersCompile(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	s, step, _ := slowSearch(t, 200*time.Millisecond, "")
	s.clock = standing(waitLimit)
	trials, known, err := Fastest(t.Context(), step, s, Options{Limit: testLimit})
	if err != nil || known || len(trials) != 2*len(candidates())-5 {
		t.Errorf("%v, known %t, %v", trials, known, err)
	}
	s.Known = true
	if _, known, err := Fastest(t.Context(), step, s, Options{Limit: testLimit}); err != nil || !known {
		t.Errorf("known %t, %v", known, err)
	}
}

// Kernels that depend on the shape of sweeps are compiled after it is found, and in no other shape.
func TestAheadWaitsForTheShapeOfSweeps(t *testing.T) {
	s, step, slow := slowSearch(t, 0, "")
	flat := newStepOf(t, step.placement().Devices, []int{512, 512}, stencil.Kind{Points: 5, Shape: stencil.StarShape})
	a := Ahead(t.Context(), flat, s, Options{Scheme: Fused})
	a.Wait(nil)
	if names := sortedPrograms(t, slow); slices.Contains(names, "point_step.cu") || !slices.Contains(names, "point.cu") {
		t.Errorf("before the shape is known: compiled %v", names)
	}
	trials, _, err := Fastest(t.Context(), flat, s, Options{Limit: testLimit})
	if err != nil || len(trials) != 2*len(candidates())-5 {
		t.Errorf("%v, %v", trials, err)
	}
	fused := 0
	for _, name := range sortedPrograms(t, slow) {
		if name == "point_step.cu" {
			fused++
		}
	}
	if fused < 1 || fused > 2 { // the names of these GPUs differ, so that each is tuned
		t.Errorf("%d shapes of fused stages were compiled", fused)
	}
}
