//go:build linux && cgo

package scheme

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// A trial that fails frees the copy of the variables, and all that the scheme had made.
func TestAFailingTrialLeavesNothing(t *testing.T) {
	session, step, fake := fakeSession(t, 1<<30)
	broken := errors.New("a launch of the caller's that fails")
	step.Stages[0].Point, step.Stages[0].Kernels = nil, func(Region) (Launch, error) {
		return func(*streams.Stream, int64, float64) error { return broken }, nil
	}
	before := fake.Live()
	if _, err := tryCopy(t.Context(), Search{Links: session.Links, Compiler: session.Compiler, Path: p2p.Staged}, step, Options{Path: p2p.Staged, Limit: testLimit}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "try scheme") {
		t.Errorf("got %v", err)
	}
	after := fake.Live()
	after.Modules = before.Modules // kernels stay loaded for the next run
	if after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
