package main

import (
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
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
			"heat on 12 x 16 x 9 points in float64, decomposition 1 x 2 x 2 on 4 CPU devices",
			"ok    exchange by direct of faces, edges and corners, width 2, float64: all points correct\n",
			"ok    scheme two-stream pairwise by peer: 20 steps on 4 CPU devices match one device bit for bit\n",
			"ok    scheme ranks by direct: 20 steps on 4 CPU devices match one device bit for bit\n",
			"ok    scheme blocked by peer: 20 steps on 4 CPU devices match one device bit for bit\n",
			"ok    scheme blocked with 4 steps per exchange by peer: 20 steps on 4 CPU devices match one device bit for bit\n",
		}, "all 49 checks hold\n"},
		{"few steps", []string{"stop.iterations=3", "precision=float32"}, []string{"scheme baseline by staged: 3 steps"}, "all 49 checks hold\n"},
		{"thin", []string{"grid.size=[12,2,9]"}, []string{"width 1, float32"}, "all 34 checks hold\n"},
		{"large", []string{"grid.size=[400,100,50]", "devices.count=2", "decomposition=[2,1,1]", "output.slice=z=49"}, []string{
			"heat on 50 x 100 x 50 points", "the grid of the file, [400 100 50], is too large",
		}, "all 49 checks hold\n"},
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
	for flags, says := range map[string]string{"--ranks-for -1s": "--ranks-for: must be above 0, got -1s", "--ranks-seed 0": "--ranks-seed: must be above 0, got 0"} {
		if code, _, errs := cli(append([]string{"verify", write(t, "c.yaml", planned)}, strings.Fields(flags)...)...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d: %s", flags, code, errs)
		}
	}
}
