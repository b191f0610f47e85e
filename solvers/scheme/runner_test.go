package scheme

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepOf is a step that moves the points of a variable by one along x.
func stepOf(name string, u *Variable) *Step {
	return &Step{Name: name, Stages: []Stage{{
		Reads: []Access{u.At(0, stencil.Star(2, 1))}, Writes: []Access{u.At(1, nil).Named("next")}, Point: &moves,
	}}}
}

// A run within a run of a runner is refused, and a panic of Options.Progress ends a run with an error that names it.
func TestRunsWithinRuns(t *testing.T) {
	set := testdevices.Host(t, 2)
	place := placed(t, set.Devices, []int{12, 10}, [3]bool{}, domain.Vec{1, 2, 1})
	wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(2, 1), 2))(t)
	u := newVariable(t, place, wide.Spec(halo.Spec{Name: "u", Element: halo.Float64}), 2)
	succeeds(t, halo.FillPoints(u.Level(0), func(p domain.Vec) float64 { return float64(1 + p[0]) }))
	step := stepOf("refused", u)
	step.Group = 2
	x := runnerBy(t, set, step, p2p.Peer)
	_, err := x.Run(t.Context(), Options{Scheme: TwoStream, Steps: 1 << 30, Progress: func(int64) {
		wants(t, "a run within a run", errOf(x.Run(t.Context(), Options{Scheme: TwoStream, Steps: 1})), nil, "a run of this runner is under way")
		panic("enough")
	}})
	wants(t, "progress", err, nil, `Options.Progress of step "refused" panicked: enough`)
}

// Ranks refuse more devices than their world has, so that auto goes on to other schemes.
func TestRanksOfManyDevices(t *testing.T) {
	set := testdevices.Host(t, 17)
	place := placed(t, set.Devices, []int{4, 34}, [3]bool{}, domain.Vec{1, 17, 1})
	u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2)
	step := stepOf("many", u)
	x := runnerBy(t, set, step, p2p.Direct)
	wants(t, "", errOf(x.Run(t.Context(), Options{Scheme: Ranks, Steps: 1})), ErrUnsuited, "16 devices at most, and there are 17")
}

// A runner takes the path of the cutting where the options leave it open.
func TestPathOfACutting(t *testing.T) {
	s := must(halo.Open(t.Context(), halo.Devices{Backend: streams.Host, Count: 2}))(t)
	defer s.Close()
	place := must(s.Cut(t.Context(), halo.Cutting{Size: []int{12, 10}, Path: p2p.Staged}))(t)
	u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2)
	step := stepOf("path", u)
	for _, c := range []struct{ asked, want p2p.Path }{{"", p2p.Staged}, {p2p.Auto, p2p.Staged}, {p2p.Peer, p2p.Peer}} {
		x := must(New(t.Context(), s, step, Options{Scheme: TwoStream, Path: c.asked}))(t)
		if res, err := x.Steps(t.Context(), 1); err != nil || x.Plans()[0].Messages[0].Path != c.want {
			t.Errorf("path %q: %+v, %v: %q, want %q", c.asked, res, err, x.Plans()[0].Messages[0].Path, c.want)
		}
		succeeds(t, x.Close())
	}
	test.Is(t, test.ErrorOf(New(t.Context(), s, step, Options{Scheme: Fused})), ErrUnsuited)
}
