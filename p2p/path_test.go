package p2p_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/exchange"
	"github.com/halox/halox/internal/bench/links"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

const (
	twice  p2p.Path = "twice"  // through pinned host memory twice
	pushed p2p.Path = "pushed" // stored by kernels
)

// Two test-only paths: one with its own routes, and one whose kernels store directly.
func TestMorePaths(t *testing.T) {
	t.Cleanup(p2p.Register(twice, p2p.Traits{Pinned: 2}, p2p.ThroughTwoHosts))
	t.Cleanup(p2p.Register(pushed, p2p.Traits{Access: true, Stored: true, Tried: true}, nil))
	t.Setenv("HALOX_CACHE", t.TempDir())
	session := test.Must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: 2}))(t)
	t.Cleanup(func() { test.Check(t, session.Close()) })
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1), Connectivity: halo.Corners}
	place := test.Must(session.Cut(t.Context(), halo.Cutting{Size: []int{9, 8, 13}, Periodic: []bool{true, false, true}, Fields: []halo.Spec{spec}}))(t)
	for _, path := range []p2p.Path{twice, pushed} {
		t.Run("exchange by "+string(path), func(t *testing.T) {
			c := halotest.Case{Placement: place, Links: session.Links, Compiler: session.Compiler, Path: path, Specs: []halo.Spec{spec}}
			test.Check(t, c.Run())
		})
		t.Run("sums by "+string(path), func(t *testing.T) { sums(t, session, place, spec, path) })
		t.Run("solve by "+string(path), func(t *testing.T) { solve(t, session, place, spec, path) })
		t.Run("transfer by "+string(path), func(t *testing.T) { transfer(t, session, path) })
	}
	t.Run("plan", func(t *testing.T) { planned(t, session, place, spec) })
	t.Run("link model", func(t *testing.T) { measured(t, session) })
	t.Run("benches", func(t *testing.T) { benched(t, session) })
}

// planned compares the plan of the test-only paths with that of built-in paths.
func planned(t *testing.T, session *halo.Session, place *halo.Placement, spec halo.Spec) {
	plan := func(path p2p.Path) *halo.Plan {
		t.Helper()
		return test.Must(halo.NewPlan(place, session.Links, path, spec))(t)
	}
	memory := func(path p2p.Path) streams.Held {
		t.Helper()
		dry := place.DryRun()
		defer streams.CloseAll(dry.Devices)
		test.Must(halo.NewExchanger(plan(path).On(dry), session.Compiler, test.Must(halo.NewField(dry, spec))(t)))(t)
		most := dry.Devices[0].Peak()
		return most
	}
	want := memory(p2p.Staged)
	want.Pinned *= 2
	if got := memory(twice); want.Pinned == 0 || got != want {
		t.Errorf("twice: got %+v, want %+v", got, want)
	}
	if got, want := memory(pushed), memory(p2p.Direct); got != want || len(plan(pushed).Messages) != len(plan(p2p.Direct).Messages) {
		t.Errorf("pushed: got %+v, want %+v", got, want)
	}
	_, err := halo.NewPlan(place, session.Links, "tunnel", spec)
	test.Says(t, err, `path: must be auto, peer, direct, staged, twice or pushed, got "tunnel"`)
}

// measured finds times of both paths in a link model, also after a round trip through its file.
func measured(t *testing.T, session *halo.Session) {
	folder := t.TempDir()
	for range 2 {
		model := test.Must(halo.LinkModel(t.Context(), session.Devices, session.Links, session.Compiler, "", folder))(t)
		for _, path := range []p2p.Path{twice, pushed} {
			for _, packed := range []bool{false, true} {
				if took, ok := model.Time(session.Devices[0], session.Devices[1], path, p2p.MessageShape{Bytes: 9, Packed: packed}); !ok || took <= 0 {
					t.Errorf("path %s, packed %v: got %v, %v", path, packed, took, ok)
				}
			}
		}
	}
}

// benched times both paths.
func benched(t *testing.T, session *halo.Session) {
	paths := []string{string(twice), string(pushed)}
	link := links.Options{Sizes: []int64{999}, Paths: paths, Modes: []string{"one-way"}, Budget: time.Millisecond}
	cubes := exchange.Options{Points: []int{4}, Radii: []int{1}, Fields: []int{1}, Paths: paths}
	test.Check(t, link.Check(), cubes.Check())
	for _, run := range []func(context.Context, *bench.Machine, *bench.Recorder) error{link.Run, cubes.Run} {
		to := &bench.Recorder{Notes: io.Discard, New: func(kind results.Kind, _ any, _ *p2p.Links) *results.Record { return &results.Record{Kind: kind} }}
		test.Check(t, run(t.Context(), &bench.Machine{Session: session}, to))
		for _, path := range paths {
			row, ok := to.Record.Find(results.NewRow().Label("path", path))
			if took, _ := row.Get(results.Time); !ok || took.N == 0 || row.Note != "" {
				t.Errorf("%s, path %s: %+v", to.Record.Kind, path, row)
			}
		}
	}
}

// sums adds up ghosts over the path, in reverse direction, and compares with path peer.
func sums(t *testing.T, session *halo.Session, place *halo.Placement, spec halo.Spec, path p2p.Path) {
	values := func(path p2p.Path) []float64 {
		t.Helper()
		plan := test.Must(halo.NewPlan(place, session.Links, path, spec))(t)
		u := test.Must(halo.NewField(place, spec))(t)
		defer u.Close()
		test.Check(t, halo.FillPoints(u, func(p domain.Vec) float64 { return float64(p[0] + 9*p[1] + 72*p[2]) }))
		x := test.Must(halo.NewExchanger(plan, session.Compiler, u))(t)
		defer x.Close()
		a := test.Must(halo.NewAccumulator(plan, session.Compiler, u))(t)
		defer a.Close()
		at := test.Must(place.NewStreams())(t)
		defer at.Close()
		test.Check(t, errors.Join(x.Exchange(at), a.Exchange(at), at.Sync(time.Minute)))
		return test.Must(halo.ReadAll[float64](u))(t)
	}
	if !slices.Equal(values(path), values(p2p.Peer)) {
		t.Error("sums differ from those over path peer")
	}
}

// solve runs steps over the path, and compares bits with the baseline.
func solve(t *testing.T, session *halo.Session, place *halo.Placement, spec halo.Spec, path p2p.Path) {
	mean := test.Must(stencil.LaplaceOf(stencil.Kinds(3)[3], []float64{1, 1, 1}))(t)
	point, _, err := sweep.Linear(mean, domain.Float64)
	test.Check(t, err)
	values := func(o scheme.Options) []float64 {
		t.Helper()
		u := test.Must(scheme.NewVariable(place, spec, 2))(t)
		defer u.Close()
		for _, level := range []int64{0, 1} {
			test.Check(t, halo.FillPoints(u.Level(level), func(p domain.Vec) float64 { return float64(p[0]*p[0] + 5*p[1] + 31*p[2]) }))
		}
		x := test.Must(scheme.New(t.Context(), session, &scheme.Step{Stages: []scheme.Stage{{
			Name: "mean", Reads: []scheme.Access{u.At(0, mean.Footprint())}, Writes: []scheme.Access{u.At(1, nil).Named("next")}, Point: &point,
		}}}, o))(t)
		defer x.Close()
		const steps = 5
		test.Must(x.Steps(t.Context(), steps))(t)
		return test.Must(halo.ReadAll[float64](u.Level(steps)))(t)
	}
	want := values(scheme.Options{Scheme: scheme.Baseline, Path: p2p.Staged})
	for _, name := range []scheme.Scheme{scheme.TwoStream, scheme.Assisted, scheme.Graph} {
		if !slices.Equal(values(scheme.Options{Scheme: name, Path: path}), want) {
			t.Errorf("scheme %s: values differ from those of the baseline", name)
		}
	}
}

// transfer sends every third number twice, at once and in fragments.
func transfer(t *testing.T, session *halo.Session, path p2p.Path) {
	const n = 4000
	message := test.Must(packing.NewMessageLayout(test.Must(datatype.Vector(n, 1, 3, datatype.Float64))(t), 1))(t)
	var sides [2]packing.Side
	var at [2]*streams.Stream
	var memory [2]*streams.Memory
	for i, d := range session.Devices {
		memory[i] = test.Must(d.Alloc(message.Layout.TrueUB()))(t)
		defer memory[i].Close()
		p := test.Must(packing.New(session.Compiler, d, packing.Options{}))(t)
		defer p.Close()
		sides[i] = packing.Side{Packer: p, Place: packing.Place{Data: memory[i].All()}, Message: message}
		at[i] = test.Must(d.NewStream(streams.Normal))(t)
		defer at[i].Close()
	}
	for _, bytes := range []int64{0, 3000} {
		move := test.Must(packing.NewTransfer(sides[1], sides[0], packing.TransferOptions{Path: path, Engine: packing.Units, Fragment: bytes, Ring: 2}))(t)
		defer move.Close()
		for round := range 2 {
			for i := range memory[0].Bytes() {
				memory[0].Bytes()[i], memory[1].Bytes()[i] = byte(i+i/251+round), 0
			}
			test.Check(t, errors.Join(move.Queue(at[1], at[0]), at[1].Sync(time.Minute), at[0].Sync(time.Minute)))
			for i, got := range memory[1].Bytes() {
				if want := memory[0].Bytes()[i]; i/8%3 == 0 && got != want || i/8%3 > 0 && got != 0 {
					t.Fatalf("fragments of %d bytes, round %d: byte %d: got %d, want %d", bytes, round, i, got, want)
				}
			}
		}
	}
}
