package halo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

func TestOpen(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	for n, says := range map[int]string{1: "1 host device", 3: "3 host devices"} {
		session, err := halo.Open(t.Context(), streams.Host, n)
		if err != nil {
			t.Fatal(err)
		}
		if session.String() != says {
			t.Errorf("%v, not %s", session, says)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	for says, open := range map[string]struct {
		backend streams.Backend
		n       int
	}{
		"-1 devices were asked for":           {streams.Host, -1},
		`no backend "gpu": cuda, host, or no`: {"gpu", 1},
	} {
		if _, err := halo.Open(t.Context(), open.backend, open.n); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error with %q", err, says)
		}
	}
	t.Setenv("HALOX_CUDA", "/nowhere/libcuda.so")
	if _, err := halo.Open(t.Context(), streams.CUDA, 1); err == nil {
		t.Error("GPUs without a driver")
	}
	session, err := halo.Open(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if session.Devices[0].Backend != streams.Host {
		t.Errorf("%v without a driver", session)
	}
}

// A session measures its links once and keeps what it found; its plans take the paths
// that were fastest. Where nothing can be kept, or is worth measuring, it opens too.
func TestSessionMeasuresItsLinks(t *testing.T) {
	for _, backend := range []streams.Backend{streams.Host, streams.CUDA} {
		t.Run("backend="+string(backend), func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "cache")
			t.Setenv("HALOX_CACHE", folder)
			first := measuredFile(t, backend, 2, folder)
			if again := measuredFile(t, backend, 2, folder); len(first) == 0 || again != first {
				t.Errorf("first %q, then %q", first, again)
			}
		})
	}
	folder := filepath.Join(t.TempDir(), "cache")
	t.Setenv("HALOX_CACHE", folder)
	if text := measuredFile(t, streams.Host, 1, folder); text != "" {
		t.Errorf("a device alone was measured: %s", text)
	}
	if err := os.WriteFile(folder, nil, 0o644); err != nil { // no folder can be made here
		t.Fatal(err)
	}
	measuredFile(t, streams.Host, 2, folder)
}

// measuredFile opens a session of n devices, checks that its plans go by what was
// measured, and returns the file of that, "" where there is none.
func measuredFile(t *testing.T, backend streams.Backend, n int, folder string) string {
	t.Helper()
	session, err := halo.Open(t.Context(), backend, n)
	if backend == streams.CUDA && err != nil && (errors.Is(err, streams.ErrNoDriver) || strings.Contains(err.Error(), "were asked for")) {
		t.Skip("SKIPPED: too few GPUs: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	p := must(session.Place([]int{8, 8}, [3]bool{}, domain.UniformRadius(2, 1)))(t)
	plan := must(halo.NewPlan(p, session.Links, p2p.Auto, star(2)))(t)
	for _, m := range plan.Messages {
		if session.Links.Between(session.Devices[m.From], session.Devices[m.To]).Usable && !strings.Contains(m.Why, " us") {
			t.Errorf("path %s: %s", m.Path, m.Why)
		}
	}
	files, _ := filepath.Glob(filepath.Join(folder, "links-*.json"))
	if len(files) == 0 {
		return ""
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A grid that is too small for the session says so, and what to change; devices that are
// closed twice are no error.
func TestSessionRefusals(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	session := must(halo.Open(t.Context(), streams.Host, 7))(t)
	if _, err := session.Place([]int{3, 2}, [3]bool{}, domain.UniformRadius(2, 1)); err == nil || !strings.Contains(err.Error(), "open fewer devices") {
		t.Error(err)
	}
	if _, err := session.NewExchanger(); err == nil || !strings.Contains(err.Error(), "no field") {
		t.Error(err)
	}
	if _, err := session.NewExchanger(nil); err == nil || !strings.Contains(err.Error(), "the field is nil") {
		t.Error(err)
	}
	if err := errors.Join(session.Close(), session.Close()); err != nil {
		t.Error(err)
	}
}

// The boundary region lies where there are neighbours only, and with the interior
// makes up what a subdomain owns; kernels are made for boxes that hold points.
func TestSplitOfPlacement(t *testing.T) {
	session, err := halo.Open(t.Context(), streams.Host, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	layers := domain.Radius{Minus: domain.Vec{1, 1}, Plus: domain.Vec{0, 2}}
	place, err := session.Place([]int{6, 9}, [3]bool{}, domain.UniformRadius(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{ // three parts along y, walls on both sides of x
		"[0,6)x[0,1)x[0,1) + [[0,6)x[1,3)x[0,1)]",
		"[0,6)x[4,4)x[0,1) + [[0,6)x[3,4)x[0,1) [0,6)x[4,6)x[0,1)]",
		"[0,6)x[7,9)x[0,1) + [[0,6)x[6,7)x[0,1)]",
	}
	for rank, says := range want {
		interior, boundary := place.Split(rank, layers)
		if got := fmt.Sprint(interior, " + ", boundary); got != says {
			t.Errorf("subdomain %d: %s, not %s", rank, got, says)
		}
	}
	boundary, interior, err := place.Kernels(layers, func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
		return place.Devices[rank].NewKernel(streams.KernelSpec{Name: fmt.Sprint(boxes), Run: func() {}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if boundary[1] == nil || interior[0] == nil || interior[1] != nil {
		t.Errorf("boundary %v, interior %v", boundary, interior)
	}
	at, err := place.NewStreams()
	if err != nil {
		t.Fatal(err)
	}
	if err := at.Launch(interior); err != nil {
		t.Error(err)
	}
	if err := at.Launch(interior[:1]); err == nil || !strings.Contains(err.Error(), "1 kernels for 3 subdomains") {
		t.Error(err)
	}
	if err := at.Close(); err != nil {
		t.Error(err)
	}
}
