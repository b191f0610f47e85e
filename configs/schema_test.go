package configs_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/test"
)

// TestReference compares docs/reference/config.md with the schema; -update writes it.
func TestReference(t *testing.T) {
	const page = "../docs/reference/config.md"
	got := configs.Reference()
	if *update {
		test.Check(t, os.WriteFile(page, []byte(got), 0o644))
	}
	want, err := os.ReadFile(page)
	if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
		t.Errorf("%v; run with -update (-want +got):\n%s", err, diff)
	}
}

func TestComplete(t *testing.T) {
	for _, c := range []struct {
		begun string
		want  []string
	}{
		{"stop.n", []string{"stop.norm=\tWhat the tolerance limits: the largest change in a step, its l2 norm, or the largest residual."}},
		{"stop.norm=", []string{"stop.norm=max", "stop.norm=l2", "stop.norm=residual"}},
		{"exchange.path=p", []string{"exchange.path=peer"}},
		{"grid.size=", nil},
		{"stops", nil},
	} {
		if got := configs.Complete(c.begun); !slices.Equal(got, c.want) {
			t.Errorf("%q completes to %q, want %q", c.begun, got, c.want)
		}
	}
	if all := configs.Complete(""); len(all) != len(configs.Keys()) {
		t.Errorf("%d of %d keys", len(all), len(configs.Keys()))
	}
}

// A key is one entry of the schema and a field of Run: without the entry, the key is unknown.
func TestKeyIsOneEntry(t *testing.T) {
	o := configs.Options{Environ: []string{"HALOX_STOP_SUMS=fast"}, Set: []string{"stop.sums=fast"}}
	const text = small + "stop: {sums: fast}"
	if run := load(t, text, o); run.Stop.Sums != "fast" {
		t.Errorf("%+v", run.Stop)
	}
	configs.WithoutKey(t, "stop.sums")
	_, err := configs.Parse("c.yaml", []byte(text), o)
	const want = `c.yaml:3: stop.sums: unknown key, must be one of iterations, time, wall_time, field, tolerance, norm, check_every
--set: stop.sums: unknown key, must be one of iterations, time, wall_time, field, tolerance, norm, check_every`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if strings.Contains(configs.Reference(), "sums") || len(configs.Complete("stop.sums")) > 0 {
		t.Error("the reference or completion still has the key")
	}
}
