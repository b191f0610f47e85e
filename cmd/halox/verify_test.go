package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
)

func TestVerify(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	measured(t)
	for _, c := range testdevices.Again(1, testdevices.Some(2, []struct {
		name   string
		set    []string
		says   []string
		checks string
	}{
		{"four devices", nil, []string{
			"heat on 12 x 16 x 9 points in float64, cut 1 x 2 x 2 for 4 host devices",
			"ok    exchange by direct of faces, edges and corners, width 2, float64: every point as geometry says\n",
			"ok    scheme two-stream pairwise by peer: 20 steps on 4 host devices give the bits of one\n",
			"ok    scheme ranks by direct: 20 steps on 4 host devices give the bits of one\n",
			"ok    scheme blocked by peer: 20 steps on 4 host devices give the bits of one\n",
			"ok    scheme blocked with 4 steps an exchange by peer: 20 steps on 4 host devices give the bits of one\n",
			"ok    ranks of host 1 and host 3: puts at every alignment come whole before their notification, tags are counted apart\n",
			"ok    ranks of host 2: puts at every alignment come whole before their notification, tags are counted apart\n",
			"ok    ranks of all 4 devices: nobody leaves a barrier early, and what was stored before is seen\n",
		}, "all 58 checks hold\n"},
		{"few steps", []string{"stop.iterations=3", "precision=float32"}, []string{"scheme baseline by staged: 3 steps"}, "all 58 checks hold\n"},
		{"thin", []string{"grid.size=[12,2,9]"}, []string{"width 1, float32"}, "all 43 checks hold\n"},
		{"large", []string{"grid.size=[400,100,50]", "devices.count=2", "decomposition=[2,1,1]", "output.slice=z=49"}, []string{
			"heat on 50 x 100 x 50 points", "the grid of the file, 400 x 100 x 50, is too large",
		}, "all 51 checks hold\n"},
	})) {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"verify", write(t, "c.yaml", planned)}
			for _, s := range c.set {
				args = append(args, "--set", s)
			}
			code, out, errs := cli(args...)
			if code != 0 || errs != "" || strings.Contains(out, "FAIL") {
				t.Fatalf("exit %d: %s%s", code, out, errs)
			}
			for _, says := range append(c.says, c.checks) {
				if !strings.Contains(out, says) {
					t.Errorf("%q is not in:\n%s", says, out)
				}
			}
		})
	}
}

// Litmus tests of ranks run for as long as is said, or once with a seed, and nothing else does.
func TestVerifyRanksFor(t *testing.T) {
	measured(t)
	for flags, says := range map[string]string{
		"--ranks-for 200ms": " rounds in ",
		"--ranks-seed 77":   "litmus tests of ranks: 1 turns of 289 rounds in ",
	} {
		code, out, errs := cli(append([]string{"verify", write(t, "c.yaml", planned)}, strings.Fields(flags)...)...)
		if code != 0 || errs != "" || !strings.Contains(out, says) || strings.Contains(out, "exchange by") {
			t.Errorf("%s: exit %d: %s%s", flags, code, out, errs)
		}
	}
	for flags, says := range map[string]string{"--ranks-for -1s": "--ranks-for -1s is negative", "--ranks-seed 0": "--ranks-seed 0: give a seed above 0"} {
		if code, _, errs := cli(append([]string{"verify", write(t, "c.yaml", planned)}, strings.Fields(flags)...)...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d: %s", flags, code, errs)
		}
	}
}

// What ranks cannot do on so many devices is left out with a line, and the rest is checked.
func TestVerifyOfMoreDevicesThanRanksTake(t *testing.T) {
	testdevices.Once(t)
	measured(t)
	v := &verifier{team: &processGroup{mpi.Alone()}}
	var out strings.Builder
	v.out = &out
	config, err := loadConfig(1, write(t, "c.yaml", planned), []string{"grid.size=[4,6,17]", "devices.count=17", "decomposition=[1,1,17]"})
	if err != nil {
		t.Fatal(err)
	}
	if v.setup, err = newSetup(t.Context(), config, mpi.Alone(), t.Output(), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.close(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range append(v.runs([]p2p.Path{p2p.Direct}), v.ranks()...) {
		if strings.Contains(c.name, "scheme ranks") || strings.Contains(c.name, "ranks of all") {
			t.Errorf("there is a check %s", c.name)
		}
	}
	if err := v.soak(t.Context(), ranksSoak{seed: 2}); err != nil { // a turn of all
		t.Error(err)
	}
	for _, says := range []string{
		"left out: scheme ranks: 17 devices; up to 16 are possible\n", "left out: ranks of all 17 devices; up to 16 are possible\n",
		"left out: all but the first 16 of 17 devices; ranks of more are not possible\nlitmus tests of ranks: ",
	} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not in:\n%s", says, out.String())
		}
	}
}

func TestVerifyReportsWhatFails(t *testing.T) {
	var out strings.Builder
	v := &verifier{setup: &setup{Setup: &solvers.Setup{Place: &halo.Placement{}}}, team: &processGroup{mpi.Alone()}, out: &out}
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
	g, err := domain.NewGrid([]int{2, 3}, [3]bool{})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{0, 1, 2, 3, 4, 5}
	if err := firstWrong(g, want, want); err != nil {
		t.Error(err)
	}
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
			if got := reduced(g, c.parts); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
