package scheme_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepOf is a step that moves the points of a variable by one along x.
func stepOf(name string, u *scheme.Variable) *scheme.Step {
	return &scheme.Step{Name: name, Stages: []scheme.Stage{{
		Reads: []scheme.Access{u.At(0, stencil.Star(2, 1))}, Writes: []scheme.Access{u.At(1, nil).Named("next")}, Point: &moves,
	}}}
}

// A run within a run of a runner is refused, and a panic of Options.Progress ends a run with an error that names it.
func TestRunsWithinRuns(t *testing.T) {
	set := testdevices.Host(t, 2)
	grid := must(domain.NewGrid([]int{12, 10}, [3]bool{}))(t)
	cut := must(domain.Decompose(grid, domain.Vec{1, 2, 1}))(t)
	place := must(halo.Place(cut, set.Devices))(t)
	wide := must(halo.NewWideHalo(cut, domain.UniformRadius(2, 1), 2))(t)
	u := must(scheme.NewVariable(place, wide.Spec(halo.Spec{Name: "u", Element: halo.Float64}), 2))(t)
	defer u.Close()
	if err := halo.FillPoints(u.Level(0), func(p domain.Vec) float64 { return float64(1 + p[0]) }); err != nil {
		t.Fatal(err)
	}
	step := stepOf("refused", u)
	step.Group = 2
	x := must(scheme.NewRunner(t.Context(), step, must(step.Plan(set.Links, p2p.Peer))(t), set.Compiler))(t)
	defer x.Close()
	_, err := x.Run(t.Context(), scheme.Options{Scheme: scheme.TwoStream, Steps: 1 << 30, Progress: func(int64) {
		if _, err := x.Run(t.Context(), scheme.Options{Scheme: scheme.TwoStream, Steps: 1}); err == nil || !strings.Contains(err.Error(), "a run of this runner is under way") {
			t.Errorf("a run within a run: %v", err)
		}
		panic("enough")
	}})
	if err == nil || !strings.Contains(err.Error(), `Options.Progress of step "refused" panicked: enough`) {
		t.Errorf("a run whose progress panics ends with %v", err)
	}
}

// Ranks refuse more devices than their world has, so that auto goes on to other schemes.
func TestRanksOfManyDevices(t *testing.T) {
	set := testdevices.Host(t, 17)
	place := must(halo.Place(must(domain.Decompose(must(domain.NewGrid([]int{4, 34}, [3]bool{}))(t), domain.Vec{1, 17, 1}))(t), set.Devices))(t)
	u := must(scheme.NewVariable(place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2))(t)
	defer u.Close()
	step := stepOf("many", u)
	x := must(scheme.NewRunner(t.Context(), step, must(step.Plan(set.Links, p2p.Direct))(t), set.Compiler))(t)
	defer x.Close()
	if _, err := x.Run(t.Context(), scheme.Options{Scheme: scheme.Ranks, Steps: 1}); !errors.Is(err, scheme.ErrUnsuited) || !strings.Contains(err.Error(), "16 devices at most, and there are 17") {
		t.Error(err)
	}
}

// A runner takes the path of the cutting where the options leave it open.
func TestPathOfACutting(t *testing.T) {
	s := must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: 2}))(t)
	defer s.Close()
	place := must(s.Cut(t.Context(), halo.Cutting{Size: []int{12, 10}, Path: p2p.Staged}))(t)
	u := must(scheme.NewVariable(place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2))(t)
	defer u.Close()
	step := stepOf("path", u)
	for _, c := range []struct{ asked, want p2p.Path }{{"", p2p.Staged}, {p2p.Auto, p2p.Staged}, {p2p.Peer, p2p.Peer}} {
		x := must(scheme.New(t.Context(), s, step, scheme.Options{Scheme: scheme.TwoStream, Path: c.asked}))(t)
		if res, err := x.Steps(t.Context(), 1); err != nil || x.Plans()[0].Messages[0].Path != c.want {
			t.Errorf("path %q: %+v, %v: %q, want %q", c.asked, res, err, x.Plans()[0].Messages[0].Path, c.want)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := scheme.New(t.Context(), s, step, scheme.Options{Scheme: scheme.Fused}); !errors.Is(err, scheme.ErrUnsuited) {
		t.Errorf("a scheme that has no such path: %v", err)
	}
}
