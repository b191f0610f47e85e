package solve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

const small = `
solver: heat
grid: {size: [11, 8, 9]}
initial: sin(pi*x)*sin(pi*y)*sin(pi*z)
stop: {iterations: 40, check_every: 10}
devices: {backend: host, count: 2}
exchange: {scheme: assisted, path: staged}
`

// load loads a small config with overrides.
func load(t *testing.T, set ...string) *configs.Run {
	t.Helper()
	return test.Must(configs.Parse("c.yaml", []byte(small), configs.Options{Set: set}))(t)
}

// Pictures that are drawn while steps run do not change the bits of a run.
func TestLive(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	testdevices.Once(t)
	var fields [2][]float64
	for i := range fields {
		config := load(t, "stop.iterations=300", "output.picture=u.svg")
		s := test.Must(Open(t.Context(), config, Options{Processes: mpi.Alone()}, progress.NewStatus(io.Discard, nil, false)))(t)
		s.live = i > 0
		events, end := s.withLive(progress.NewBar(io.Discard, progress.Options{}), nil)
		var drawn atomic.Int64
		if s.live {
			do := events[0].Do
			events[0].Do = func(ctx context.Context, so scheme.Result) error {
				if drawn.Add(1) < 20 {
					events[0].Request()
				}
				return do(ctx, so)
			}
		}
		res := test.Must(s.measured(t.Context(), s.Options(), &results.Run{}, events...))(t)
		test.Check(t, end(t.Context(), res))
		if n := drawn.Load(); s.live != (n > 1) || res.Steps != 300 {
			t.Errorf("%d pictures in %d steps", n, res.Steps)
		}
		fields[i] = make([]float64, 11*8*9)
		test.Check(t, s.solver.Gather(t.Context(), 0, fields[i], domain.Box{Hi: domain.Vec{11, 8, 9}}))
		test.Check(t, errors.Join(s.solver.Close(), Close(s.Setup)))
	}
	for i, v := range fields[0] {
		if v != fields[1][i] {
			t.Fatalf("value %d is %v, with pictures %v", i, v, fields[1][i])
		}
	}
}

// The record of a run that is ended by force has the steps until then.
func TestRecordOfARunThatIsForced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.json")
	config := load(t, "output.record="+name)
	s := test.Must(Open(t.Context(), config, Options{Processes: mpi.Alone()}, progress.NewStatus(t.Output(), nil, false)))(t)
	defer Close(s.Setup)
	record := test.Must(s.newRecord(t.Context(), time.Now()))(t)
	record.Run.Iterations = 7
	if said := s.recordWriter(record, nil)(); !strings.Contains(said, name+" records the 7 steps completed") {
		t.Error(said)
	}
	r, err := results.Read(name)
	if err != nil || !r.Interrupted || r.Run.Iterations != 7 || len(r.Rows) != 1 {
		t.Errorf("%+v, %v", r, err)
	}

	// One of several processes writes it at the signal already; no other run does.
	alone, several := s.Place.Processes, &mpi.Processes{}
	defer func() { s.Place.Processes = alone }()
	for processes, want := range map[*mpi.Processes]bool{alone: false, several: true} {
		s.Place.Processes = processes
		ctx, cancel := context.WithCancel(t.Context())
		written := false
		kept := s.writePartial(ctx, func() string { written = true; return "" })
		cancel()
		if kept(); written != want {
			t.Errorf("%v: written %t, want %t", processes, written, want)
		}
	}
}

// The hash of a grid changes with all that defines the grid, and with nothing else.
func TestGridHash(t *testing.T) {
	hashes := map[string]string{}
	for name, text := range map[string]string{
		"one":        "boundary: {y: periodic}",
		"the same":   "boundary: {y: periodic, x: neumann}\ninitial: 2*x\ndecomposition: [2, 1]",
		"equation":   "solver: equation\nfields: {w: {initial: x, boundary: {x: {dirichlet: 0}, y: periodic}}}\nequations: {w: lap(w)}",
		"size":       "boundary: {y: periodic}\ngrid: {size: [14, 12], spacing: 0.1}",
		"spacing":    "boundary: {y: periodic}\ngrid: {size: [12, 14], spacing: 0.2}",
		"walls":      "initial: x",
		"transposed": "boundary: {x: periodic}",
		"precision":  "boundary: {y: periodic}\nprecision: float32",
	} {
		for key, line := range map[string]string{"solver:": "\nsolver: heat", "grid:": "\ngrid: {size: [12, 14], spacing: 0.1}"} {
			if !strings.Contains(text, key) {
				text += line
			}
		}
		c := test.Must(configs.Parse("c.yaml", []byte(text), configs.Options{}))(t)
		var tree any
		test.Check(t, json.Unmarshal(test.Must(json.Marshal(c))(t), &tree))
		hash := test.Must(gridHash(c))(t)
		if again := test.Must(gridHash(tree))(t); len(hash) != 16 || again != hash {
			t.Errorf("%s: %q, of the tree %q", name, hash, again)
		}
		same := name == "one" || name == "the same" || name == "equation"
		for other, h := range hashes {
			if alike := same && (other == "one" || other == "the same" || other == "equation"); (h == hash) != alike {
				t.Errorf("%s and %s: %s, %s", name, other, hash, h)
			}
		}
		hashes[name] = hash
	}
}
