//go:build linux && cgo

package scheme

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// A trial that fails frees the copy of the variables, and all that the scheme had made.
func TestAFailingTrialLeavesNothing(t *testing.T) {
	compiler := testdevices.Compiler(t)
	library := cudafake.Build(t, cudafake.Devices(2))
	platform, err := streams.CUDAPlatform(library)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := platform.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer platform.Close()
	defer streams.CloseAll(devices)
	links, err := p2p.Discover(t.Context(), devices, nil)
	if err != nil {
		t.Fatal(err)
	}
	step := newStep(t, &testdevices.Set{Devices: devices}, 2, 16)
	broken := errors.New("a launch of the caller's that fails")
	step.Stages[0].Point, step.Stages[0].Kernels = nil, func(Region) (Launch, error) {
		return func(*streams.Stream, int64, float64) error { return broken }, nil
	}
	fake := cudafake.Inspect(t, library)
	before := fake.Live()
	session := &halo.Session{Backend: streams.CUDA, Devices: devices, Links: links, Compiler: compiler}
	if _, err := tryCopy(t.Context(), session, step, Options{Path: p2p.Staged, Limit: testLimit}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "try scheme") {
		t.Errorf("got %v", err)
	}
	after := fake.Live()
	after.Modules = before.Modules // kernels stay loaded for the next run
	if after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
