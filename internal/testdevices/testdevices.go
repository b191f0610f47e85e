// Package testdevices provides the devices that tests run on: always CPU devices,
// and GPUs if this machine has some.
package testdevices

import (
	"errors"
	"os"
	"testing"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Set is open devices of one backend, their links, and a compiler for them.
type Set struct {
	Devices  []*streams.Device
	Links    *p2p.Links
	Compiler *kernels.Compiler
}

// Each runs f once per backend, as a subtest: on n CPU devices, and on all GPUs. Without a GPU that subtest is
// skipped. HALOX_TEST_BACKEND selects the only backend that is tested; if it is empty, all are.
func Each(t *testing.T, n int, f func(t *testing.T, s *Set)) {
	onBackend(t, "host", func(t *testing.T) { f(t, Host(t, n)) })
	onBackend(t, "cuda", func(t *testing.T) { f(t, GPUs(t)) })
}

// onBackend runs a subtest, unless HALOX_TEST_BACKEND names another backend.
func onBackend(t *testing.T, name string, f func(t *testing.T)) {
	t.Run("backend="+name, func(t *testing.T) {
		if only := os.Getenv("HALOX_TEST_BACKEND"); only != "" && only != name {
			t.Skip("SKIPPED: HALOX_TEST_BACKEND names another backend")
		}
		f(t)
	})
}

// Host opens n CPU devices for the duration of the test.
func Host(t testing.TB, n int) *Set { return open(t, streams.HostPlatform(n)) }

// GPUs opens all GPUs, or those of Share, for the duration of the test, and skips it if there are too few.
func GPUs(t testing.TB) *Set {
	t.Helper()
	p, err := streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
	if errors.Is(err, streams.ErrNoDriver) {
		t.Skip("SKIPPED: no GPU: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ids := shareOf(len(p.Devices()))
	if len(ids) == 0 {
		p.Close()
		t.Skipf("SKIPPED: %d GPUs, which %d processes would share", len(p.Devices()), processes)
	}
	return open(t, p, ids...)
}

func open(t testing.TB, p *streams.Platform, ids ...int) *Set {
	t.Helper()
	devices, err := p.Open(ids...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(streams.CloseAll(devices), p.Close()); err != nil {
			t.Error(err)
		}
	})
	links, err := p2p.Discover(t.Context(), devices, nil)
	if err != nil {
		t.Fatal(err)
	}
	compiler := kernels.CompilerFromEnv()
	return &Set{devices, links, compiler}
}
