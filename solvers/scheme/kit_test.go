package scheme

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// placed cuts a grid over the first devices.
func placed(t testing.TB, devices []*streams.Device, size []int, periodic [3]bool, parts domain.Vec) *halo.Placement {
	t.Helper()
	cut := must(domain.Decompose(must(domain.NewGrid(size, periodic))(t), parts))(t)
	return must(halo.Place(cut, devices[:len(cut.Subdomains)]))(t)
}

// newVariable makes a variable, until the test ends.
func newVariable(t testing.TB, place *halo.Placement, spec halo.Spec, levels int) *Variable {
	t.Helper()
	v := must(NewVariable(place, spec, levels))(t)
	t.Cleanup(func() { v.Close() })
	return v
}

// runnerBy makes a step ready over a path, until the test ends.
func runnerBy(t testing.TB, set *testdevices.Set, step *Step, path p2p.Path) *Runner {
	t.Helper()
	x := must(NewRunner(t.Context(), step, must(step.Plan(set.Links, path))(t), set.Compiler))(t)
	t.Cleanup(func() { x.Close() })
	return x
}

// runnerFor makes a step ready over the path that a scheme takes.
func runnerFor(t testing.TB, set *testdevices.Set, step *Step, name Scheme) *Runner {
	t.Helper()
	return runnerBy(t, set, step, cmp.Or(name.Needs().Path, p2p.Auto))
}

// wants fails the test unless an error is one of a kind, if that is not nil, and says something; without both, unless there
// is none.
func wants(t testing.TB, name string, err, kind error, says string) {
	t.Helper()
	if err == nil && kind == nil && says == "" {
		return
	}
	if err == nil || kind == nil && says == "" || kind != nil && !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want %v with %q", name, err, kind, says)
	}
}

// must returns a value that was made without an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		test.Check(t, err)
		return v
	}
}

// succeeds fails the test if something failed.
func succeeds(t testing.TB, err error) {
	t.Helper()
	test.Check(t, err)
}

// errOf returns the error of a call with another result.
func errOf[T any](_ T, err error) error { return err }
