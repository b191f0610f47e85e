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

// placed decomposes a grid over the first devices.
func placed(t testing.TB, devices []*streams.Device, size []int, periodic [3]bool, parts domain.Vec) *halo.Placement {
	t.Helper()
	cut := must(domain.Decompose(must(domain.NewGrid(size, periodic[:len(size)]))(t), parts))(t)
	return must(halo.Place(cut, devices[:len(cut.Subdomains)]))(t)
}

// newVariable makes a variable until the end of the test.
func newVariable(t testing.TB, place *halo.Placement, spec halo.Spec, levels int) *Variable {
	t.Helper()
	v := must(NewVariable(place, spec, levels))(t)
	t.Cleanup(func() { v.Close() })
	return v
}

// runnerBy prepares a step over a path until the end of the test.
func runnerBy(t testing.TB, set *testdevices.Set, step *Step, path p2p.Path) *Runner {
	t.Helper()
	x := must(NewRunner(t.Context(), step, must(step.Plan(set.Links, path))(t), set.Compiler))(t)
	t.Cleanup(func() { x.Close() })
	return x
}

// runnerFor prepares a step over the path of a scheme.
func runnerFor(t testing.TB, set *testdevices.Set, step *Step, name Scheme) *Runner {
	t.Helper()
	return runnerBy(t, set, step, cmp.Or(name.Needs().Path, p2p.Auto))
}

// wants fails the test unless an error is of a kind, if that is not nil, and contains a text; without both,
// unless it is nil.
func wants(t testing.TB, name string, err, kind error, says string) {
	t.Helper()
	if err == nil && kind == nil && says == "" {
		return
	}
	if err == nil || kind == nil && says == "" || kind != nil && !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want %v with %q", name, err, kind, says)
	}
}

// must returns a function that returns the value, or fails the test on an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		test.Check(t, err)
		return v
	}
}

// succeeds fails the test on an error.
func succeeds(t testing.TB, err error) {
	t.Helper()
	test.Check(t, err)
}

// errOf returns the error of a call with another result.
func errOf[T any](_ T, err error) error { return err }
