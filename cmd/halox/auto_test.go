package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// newTestSetup returns a setup of a small problem on host devices.
func newTestSetup(t *testing.T, set ...string) *setup {
	t.Helper()
	config, err := loadConfig(write(t, "c.yaml", small), set)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newSetup(t.Context(), config, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// The schemes are tried by trial runs, over the paths that there are, and the fastest comes
// first.
func TestTrySchemes(t *testing.T) {
	w := newTestSetup(t, "exchange.path=auto")
	times, err := w.trySchemes(context.Background())
	if err != nil || len(times) < len(schemesToTry()) {
		t.Fatalf("%v, %v", times, err)
	}
	if !slices.IsSortedFunc(times, func(a, b schemeTime) int { return int(a.Step - b.Step) }) || times[0].Step <= 0 {
		t.Errorf("%v", times)
	}
	if err := w.take(times); err != nil || w.scheme != times[0].Scheme || w.plan.Path() != string(times[0].Path) {
		t.Errorf("scheme %s by %s, %v", w.scheme, w.plan.Path(), err)
	}
	staged := newTestSetup(t, "exchange.path=staged")
	times, err = staged.trySchemes(context.Background())
	if err != nil || slices.ContainsFunc(times, func(s schemeTime) bool { return s.Path != p2p.Staged || s.Scheme == scheme.Fused }) {
		t.Errorf("%v, %v", times, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.trySchemes(ctx); err == nil {
		t.Error("an interrupted choice was made")
	}
}

// What was measured is remembered for the same problem on the same devices, and not for
// another; a damaged file is as good as none.
func TestSchemesAreRemembered(t *testing.T) {
	t.Setenv("HALOX_CACHE", filepath.Join(t.TempDir(), "cache"))
	w, other := newTestSetup(t, "exchange.path=auto"), newTestSetup(t, "exchange.path=auto", "grid.size=[9, 9, 9]")
	if _, ok := w.rememberedSchemes(); ok {
		t.Fatal("something is remembered")
	}
	times := []schemeTime{{scheme.Fused, p2p.Direct, 5 * time.Microsecond}, {scheme.Assisted, p2p.Peer, 17 * time.Microsecond}}
	w.rememberSchemes(times)
	if got, ok := w.rememberedSchemes(); !ok || !slices.Equal(got, times) {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := other.rememberedSchemes(); ok {
		t.Errorf("of another grid: %v", got)
	}
	other.rememberSchemes(times[:1])
	if got, ok := w.rememberedSchemes(); !ok || !slices.Equal(got, times) {
		t.Errorf("with those of another grid: %v, %v", got, ok)
	}
	if files, _ := filepath.Glob(filepath.Join(os.Getenv("HALOX_CACHE"), "schemes-*.json")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}

// An entry that is damaged, or says what cannot have been measured, counts as none, and is
// measured again.
func TestDamagedSchemesAreMeasuredAgain(t *testing.T) {
	t.Setenv("HALOX_CACHE", filepath.Join(t.TempDir(), "cache"))
	w := newTestSetup(t, "exchange.path=auto", "exchange.scheme=auto")
	times := []schemeTime{{scheme.Assisted, p2p.Direct, 5 * time.Microsecond}, {scheme.Fused, p2p.Direct, 17 * time.Microsecond}}
	w.rememberSchemes(times)
	file := w.schemesEntry().Path()
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.machine.backend = streams.CUDA
	defer func() { w.machine.backend = streams.Host }()
	for name, change := range map[string][2]string{
		"cut off":             {"]", ""},
		"a list":              {"{", "[{"},
		"no times":            {"[", "null, \"x\": ["},
		"no such scheme":      {`"assisted"`, `"steam"`},
		"the baseline":        {`"assisted"`, `"baseline"`},
		"no such path":        {`"direct"`, `"tunnel"`},
		"path to be chosen":   {`"direct"`, `"auto"`},
		"a negative time":     {`: 5000`, `: -5000`},
		"no time":             {`: 5000`, `: 0`},
		"a time past 64 bits": {`: 5000`, `: 1e30`},
		"a text for a time":   {`: 5000`, `: "5 us"`},
		"not in order":        {`: 5000`, `: 50000`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(string(good), change[0], change[1], 1)
			if text == string(good) {
				t.Fatalf("%q is not in %s", change[0], good)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if times, ok := w.rememberedSchemes(); ok {
				t.Errorf("%v is read", times)
			}
		})
	}
	var notes strings.Builder
	if err := w.choose(context.Background(), &notes); err != nil || !strings.HasPrefix(notes.String(), "tried the schemes") {
		t.Errorf("%q, %v", &notes, err)
	}
	if _, ok := w.rememberedSchemes(); !ok {
		t.Error("the damaged file stays")
	}
}

// Host devices keep the rule, a scheme that was asked for is taken, and on GPUs what is
// remembered decides.
func TestChooseScheme(t *testing.T) {
	t.Setenv("HALOX_CACHE", filepath.Join(t.TempDir(), "cache"))
	for _, set := range []string{"exchange.scheme=auto", "exchange.scheme=assisted"} {
		w := newTestSetup(t, set)
		before := w.scheme
		if err := w.choose(context.Background(), io.Discard); err != nil || w.scheme != before || w.tried != nil {
			t.Errorf("%s: %s after %s, %v", set, w.scheme, before, err)
		}
	}
	w := newTestSetup(t, "exchange.scheme=auto", "exchange.path=auto")
	w.rememberSchemes([]schemeTime{{scheme.Resident, p2p.Direct, 4 * time.Microsecond}})
	w.machine.backend = streams.CUDA
	defer func() { w.machine.backend = streams.Host }()
	var notes strings.Builder
	if err := w.choose(context.Background(), &notes); err != nil || w.scheme != scheme.Resident || notes.Len() > 0 {
		t.Errorf("%s, %q, %v", w.scheme, &notes, err)
	}
}
