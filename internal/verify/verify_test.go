package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// What ranks cannot do on so many devices is left out with a line, and the rest is checked.
func TestMoreDevicesThanRanksTake(t *testing.T) {
	testdevices.Once(t)
	set := testdevices.Host(t, 17)
	grid, err := domain.NewGrid([]int{4, 6, 17}, nil)
	test.Check(t, err)
	p := &solvers.Problem{Grid: grid, Spacing: []float64{1, 1, 1}, Element: domain.Float64}
	for i := range p.Boundary {
		p.Boundary[i].Kind = solvers.Neumann
	}
	if p.Stencil, err = stencil.LaplaceOf(stencil.Kinds(3)[0], p.Spacing); err != nil {
		t.Fatal(err)
	}
	if p.Initial, err = stencil.Parse("x"); err != nil {
		t.Fatal(err)
	}
	session := &halo.Session{
		Backend: set.Devices[0].Backend, Devices: set.Devices, Links: set.Links, Compiler: set.Compiler,
	}
	setup := test.Must(solvers.Open(t.Context(), session, p, solvers.OpenOptions{Parts: []int{1, 1, 17}}))(t)
	t.Cleanup(setup.Close)
	var out strings.Builder
	v := &Verifier{Setup: setup, Steps: 3, Limit: 10 * time.Minute, Out: &out, During: func(string) {}}
	for _, c := range v.runs(t.Context(), []p2p.Path{p2p.Direct}) {
		if strings.Contains(c.name, "scheme ranks") {
			t.Errorf("there is a check %s", c.name)
		}
	}
	// no norms in passes, whose kernels compile long, unless the run takes them
	if o := v.options(way{scheme: scheme.Blocked}); o.CheckEvery != 0 {
		t.Errorf("passes take norms every %d steps", o.CheckEvery)
	}
	if o := v.options(way{scheme: scheme.Resident}); o.CheckEvery != 3 {
		t.Errorf("resident takes norms every %d steps", o.CheckEvery)
	}
	if err := v.Soak(t.Context(), 0, 2); err != nil { // a turn of all
		t.Error(err)
	}
	for _, says := range []string{
		"left out: scheme ranks: must have at most 16 devices, got 17\n",
		"left out: all except the first 16 of 17 devices, the most that ranks support\nlitmus tests of ranks: ",
	} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not in:\n%s", says, out.String())
		}
	}
}

func TestVerifyReportsWhatFails(t *testing.T) {
	var out strings.Builder
	v := &Verifier{Setup: &solvers.Setup{Place: &halo.Placement{}}, Out: &out, During: func(string) {}}
	checks := []check{
		{"one", func(context.Context) error { return nil }},
		{"two", func(context.Context) error { return errors.New("point [1 2 3] is wrong") }},
	}
	err := v.report(context.Background(), checks)
	if err == nil || err.Error() != "1 of 2 checks failed" {
		t.Errorf("error %v", err)
	}
	if out.String() != "ok    one\nFAIL  two: point [1 2 3] is wrong\n" {
		t.Errorf("printed %q", out.String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := v.report(ctx, checks); err != context.Canceled {
		t.Errorf("interrupted: %v", err)
	}
}

func TestFirstWrongNamesThePoint(t *testing.T) {
	g, err := domain.NewGrid([]int{2, 3}, nil)
	test.Check(t, err)
	want := []float64{0, 1, 2, 3, 4, 5}
	test.Report(t, firstWrong(g, want, want))
	err = firstWrong(g, []float64{0, 1, 2, 3.5, 4, 6}, want)
	if err == nil || err.Error() != "point [1 1 0] is 3.5, on one device 3" {
		t.Error(err)
	}
}

func TestReduced(t *testing.T) {
	for _, c := range []struct {
		name              string
		size, parts, want domain.Vec
	}{
		{"small enough", domain.Vec{64, 64, 64}, domain.Vec{1, 1, 4}, domain.Vec{64, 64, 64}},
		{"a cube", domain.Vec{512, 512, 512}, domain.Vec{1, 2, 2}, domain.Vec{64, 64, 64}},
		{"odd", domain.Vec{1001, 1001, 1}, domain.Vec{2, 2, 1}, domain.Vec{501, 501, 1}},
		{"thick parts alone", domain.Vec{9000, 9, 9}, domain.Vec{1000, 1, 1}, domain.Vec{4500, 5, 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := domain.Grid{Dims: 3, Size: c.size}
			if got := Reduced(g, c.parts); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
