package halo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// hostDevices returns n CPU devices.
func hostDevices(n int) halo.Devices { return halo.Devices{Backend: streams.Host, Count: n} }

// refusesOption checks that an error names an option and contains a text.
func refusesOption(t *testing.T, name string, err error, option, says string) {
	t.Helper()
	if found, ok := errors.AsType[*halo.OptionError](err); !ok || found.Option != option {
		t.Errorf("%s: got %v, want one of %s", name, err, option)
	}
	refuses(t, name, err, says)
}

func TestOpen(t *testing.T) {
	for says, want := range map[string]halo.Devices{
		"1 CPU device":  hostDevices(1),
		"3 CPU devices": hostDevices(3),
		"2 CPU devices": {Backend: streams.Host, IDs: []int{4, 1}},
	} {
		session := must(halo.Open(t.Context(), want))(t)
		if session.String() != says || session.Note != "" || session.Backend != streams.Host {
			t.Errorf("%v, not %s; note %q", session, says, session.Note)
		}
		if len(want.IDs) > 0 && (session.Devices[0].ID != 4 || session.Devices[1].ID != 1) {
			t.Errorf("devices %v for ids %v", session.Devices, want.IDs)
		}
		done(t, nil, session.Close())
	}
}

func TestOpenErrors(t *testing.T) {
	for name, c := range map[string]struct {
		want         halo.Devices
		option, says string
	}{
		"a negative number":         {hostDevices(-1), "Devices.Count", "must not be negative, got -1"},
		"no such backend":           {halo.Devices{Backend: "gpu"}, "Devices.Backend", `must be cuda, host or empty, got "gpu"`},
		"too many CPU devices":      {hostDevices(1025), "Devices.Count", "must be at most 1024 CPU devices, got 1025"},
		"a CPU device out of range": {halo.Devices{Backend: streams.Host, IDs: []int{1024}}, "Devices.IDs", "must be at most 1024"},
		"an id twice":               {halo.Devices{Backend: streams.Host, IDs: []int{1, 1}}, "Devices.IDs", "must be distinct"},
		"a negative id":             {halo.Devices{Backend: streams.Host, IDs: []int{-1}}, "Devices.IDs", "at least 0, got [-1]"},
		"another number than ids":   {halo.Devices{Backend: streams.Host, Count: 3, IDs: []int{0, 1}}, "Devices.Count", "the number of Devices.IDs (2), got 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := halo.Open(t.Context(), c.want)
			refusesOption(t, name, err, c.option, c.says)
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	test.Is(t, test.ErrorOf(halo.Open(ended, hostDevices(1))), context.Canceled)
}

// A named driver must be usable, unless CPU devices are requested.
func TestOpenWithoutNamedDriver(t *testing.T) {
	t.Setenv("HALOX_CUDA", "/nowhere/libcuda.so")
	for _, backend := range []streams.Backend{"", streams.CUDA} {
		_, err := halo.Open(t.Context(), halo.Devices{Backend: backend})
		if !errors.Is(err, streams.ErrNoDriver) || !strings.Contains(err.Error(), "HALOX_CUDA: ") || !strings.Contains(err.Error(), "/nowhere/libcuda.so") {
			t.Errorf("backend %q: %v", backend, err)
		}
	}
	session := must(halo.Open(t.Context(), hostDevices(1)))(t)
	done(t, nil, session.Close())
}

// A session measures its links once and saves the result; its plans take the paths that were fastest. It also
// opens if nothing can be saved or measured.
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
		t.Errorf("a single device was measured: %s", text)
	}
	if err := os.WriteFile(folder, nil, 0o644); err != nil { // no folder can be created here
		t.Fatal(err)
	}
	measuredFile(t, streams.Host, 2, folder)
}

// measuredFile opens a session of n devices, checks that its plans follow the measurements, and returns their
// file, "" if there is none.
func measuredFile(t *testing.T, backend streams.Backend, n int, folder string) string {
	t.Helper()
	session, err := halo.Open(t.Context(), halo.Devices{Backend: backend, Count: n})
	if backend == streams.CUDA && err != nil && (errors.Is(err, streams.ErrNoDriver) || strings.Contains(err.Error(), "devices of this machine, got")) {
		t.Skip("SKIPPED: too few GPUs: ", err)
	}
	test.Check(t, err)
	defer session.Close()
	p := must(session.Cut(t.Context(), halo.Cutting{Size: []int{8, 8}, Fields: []halo.Spec{star(2)}}))(t)
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
	text := must(os.ReadFile(files[0]))(t)
	return string(text)
}

// Invalid decompositions name the option; closing devices twice is not an error.
func TestSessionRefusals(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	session := must(halo.Open(t.Context(), hostDevices(7)))(t)
	for name, c := range map[string]struct {
		cutting      halo.Cutting
		option, says string
	}{
		"no grid":           {halo.Cutting{}, "Cutting.Size", "domain: "},
		"too small":         {halo.Cutting{Size: []int{3, 2}, Fields: []halo.Spec{oneLayer}}, "Devices.Count", "use fewer devices"},
		"too small for one": {halo.Cutting{Size: []int{3, 1}, Periodic: []bool{false, true}, Fields: []halo.Spec{{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 2)}}, Devices: 1}, "Devices.Count", "need: use a larger grid"},
		"parts of too few":  {halo.Cutting{Size: []int{9, 9}, Parts: []int{2, 3}}, "Cutting.Parts", "[2 3 1] is for 6 devices, 7 are used"},
		"parts of too many": {halo.Cutting{Size: []int{9, 9}, Parts: []int{2, 3}, Devices: 5}, "Cutting.Parts", "[2 3 1] is for 6 devices, 5 are used"},
		"negative parts":    {halo.Cutting{Size: []int{9, 9}, Parts: []int{-7, -1}}, "Cutting.Parts", "domain: "},
		"parts of no axis":  {halo.Cutting{Size: []int{9, 9}, Parts: []int{7}}, "Cutting.Parts", "must have 2 entries, one per axis, or none, got 1"},
		"too much periodic": {halo.Cutting{Size: []int{9, 9}, Periodic: []bool{true, true, true}}, "Cutting.Periodic", "must have 2 entries"},
		"too many parts":    {halo.Cutting{Size: []int{9, 6}, Parts: []int{1, 7}}, "Cutting.Parts", "domain: "},
		"no such path":      {halo.Cutting{Size: []int{9, 9}, Path: "foo"}, "Cutting.Path", `must be a path (auto, `},
		"path mpi":          {halo.Cutting{Size: []int{9, 9}, Path: p2p.MPI}, "Cutting.Path", `must be a path (auto, `},
		"no element":        {halo.Cutting{Size: []int{9, 9}, Fields: []halo.Spec{oneLayer, {Name: "x"}}}, "Cutting.Fields", `field 1, "x": element: must be float32`},
		"a negative width":  {halo.Cutting{Size: []int{9, 9}, Fields: []halo.Spec{{Name: "x", Element: halo.Float64, Width: domain.UniformRadius(2, -1)}}}, "Cutting.Fields", `field 0, "x": the ghost width must be between 0`},
		"a width along z":   {halo.Cutting{Size: []int{9, 9}, Fields: []halo.Spec{{Name: "x", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}}}, "Cutting.Fields", "no ghosts along z in a grid of 2 dimensions"},
		"too many widths":   {halo.Cutting{Size: []int{9, 9}, Fields: []halo.Spec{{Name: "x", Element: halo.Float64, Widths: make([]domain.Radius, 2)}}}, "Cutting.Fields", "if SoA), got 2"},
		"too many devices":  {halo.Cutting{Size: []int{9, 9}, Devices: 8}, "Cutting.Devices", "must be at most the open devices (7 CPU devices), got 8"},
	} {
		_, err := session.Cut(t.Context(), c.cutting)
		refusesOption(t, name, err, c.option, c.says)
	}
	refuses(t, "no field", errorOf(session.NewExchanger(t.Context())), "at least one field")
	refuses(t, "the field is nil", errorOf(session.NewExchanger(t.Context(), nil)), "the field is nil")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	test.Is(t, test.ErrorOf(session.Cut(ended, halo.Cutting{Size: []int{64, 64}})), context.Canceled)
	place := must(session.Cut(t.Context(), halo.Cutting{Size: []int{64, 64}, Fields: []halo.Spec{oneLayer}}))(t)
	field := must(halo.NewField(place, oneLayer))(t)
	test.Is(t, test.ErrorOf(session.NewExchanger(ended, field)), context.Canceled)
	done(t, nil, errors.Join(session.Close(), session.Close()))
}

// The path of a Cutting applies to all plans with p2p.Auto, without measurements; the path of a plan takes
// precedence.
func TestPathOfACutting(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	for _, path := range paths {
		session := must(halo.Open(t.Context(), hostDevices(2)))(t)
		c := halo.Cutting{Size: []int{8, 8}, Fields: []halo.Spec{oneLayer}, Path: path}
		place := must(session.Cut(t.Context(), c))(t)
		x := must(session.NewExchanger(t.Context(), must(halo.NewField(place, oneLayer))(t)))(t)
		dry := place.DryRun()
		for by, plan := range map[string]*halo.Plan{
			"the session": halo.PlanOf(x),
			"a plan":      must(halo.NewPlan(place, session.Links, p2p.Auto, oneLayer))(t),
			"a draft":     must(halo.NewPlan(must(session.Draft(c))(t), session.Links, p2p.Auto, oneLayer))(t),
		} {
			if len(plan.Messages) != 2 || plan.Path() != string(path) {
				t.Errorf("%s takes path %q for %d messages; %s was requested", by, plan.Path(), len(plan.Messages), path)
			}
		}
		if dry.Path != path || session.Links.Model != nil {
			t.Errorf("path %q of a dry run, want %q; measured: %v", dry.Path, path, session.Links.Model != nil)
		}
		for _, other := range []p2p.Path{p2p.Staged, p2p.Peer} {
			if plan := must(halo.NewPlan(place, session.Links, other, oneLayer))(t); plan.Path() != string(other) {
				t.Errorf("path %q of a plan over %s, placed for %s", plan.Path(), other, path)
			}
		}
		done(t, nil, errors.Join(streams.CloseAll(dry.Devices), session.Close()))
	}
}

// If the number of devices is open, a grid that is too small for all devices uses as many as possible.
func TestCutUsesAsManyDevicesAsFit(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1000))
	cores := must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host}))(t)
	defer cores.Close()
	if n := len(cores.Devices); n > runtime.NumCPU() {
		t.Errorf("%d devices on %d cores", n, runtime.NumCPU())
	}
	session := must(halo.Open(t.Context(), hostDevices(7)))(t)
	defer session.Close()
	halo.LeaveOpen(session)
	wide := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 2)}
	for name, c := range map[string]struct {
		cutting halo.Cutting
		parts   domain.Vec
	}{
		"all":              {halo.Cutting{Size: []int{70, 70}}, domain.Vec{1, 7, 1}},
		"six":              {halo.Cutting{Size: []int{3, 2}}, domain.Vec{3, 2, 1}},
		"three":            {halo.Cutting{Size: []int{3, 6}, Fields: []halo.Spec{oneLayer, wide}}, domain.Vec{1, 3, 1}},
		"one":              {halo.Cutting{Size: []int{1, 1}}, domain.Vec{1, 1, 1}},
		"one per part":     {halo.Cutting{Size: []int{9, 9}, Parts: []int{2, 0}}, domain.Vec{2, 1, 1}},
		"as many as given": {halo.Cutting{Size: []int{9, 9}, Devices: 4}, domain.Vec{1, 4, 1}},
	} {
		place := must(session.Cut(t.Context(), c.cutting))(t)
		if place.Parts != c.parts || len(place.Devices) != int(c.parts.Product()) || place.Devices[0] != session.Devices[0] || place.Mapping != nil {
			t.Errorf("%s: parts %v on %v, mapping %v", name, place.Parts, place.Devices, place.Mapping)
		}
	}
}

// The boundary region is only at sides with neighbors, and together with the interior it is the owned box;
// kernels are made only for boxes with points.
func TestSplitOfPlacement(t *testing.T) {
	session := must(halo.Open(t.Context(), hostDevices(3)))(t)
	defer session.Close()
	layers := domain.Radius{Minus: domain.Vec{1, 1}, Plus: domain.Vec{0, 2}}
	place := must(session.Cut(t.Context(), halo.Cutting{Size: []int{6, 9}}))(t)
	want := []string{ // three parts along y, physical boundaries on both sides of x
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
	test.Check(t, err)
	if boundary[1] == nil || interior[0] == nil || interior[1] != nil {
		t.Errorf("boundary %v, interior %v", boundary, interior)
	}
	at := must(place.NewStreams())(t)
	test.Report(t, at.Launch(interior))
	refuses(t, "too few kernels", at.Launch(interior[:1]), "one kernel per subdomain (3), got 1")
	done(t, nil, at.Close())
}
