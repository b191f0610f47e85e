package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// Pictures that are drawn while steps run do not change the bits of a run.
func TestLive(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	testdevices.Once(t)
	var fields [2][]float64
	for i := range fields {
		config := test.Must(loadConfig(t.Context(), 1, write(t, "c.yaml", small), []string{"stop.iterations=300", "output.picture=u.svg"}))(t)
		s := test.Must(newSolverRun(t.Context(), config, nil, nil, mpi.Alone(), progress.NewStatus(io.Discard, nil, false), traceFlags{}))(t)
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
		test.Check(t, errors.Join(s.solver.Close(), closeSetup(s.Setup)))
	}
	for i, v := range fields[0] {
		if v != fields[1][i] {
			t.Fatalf("value %d is %v, with pictures %v", i, v, fields[1][i])
		}
	}
	if code, _, errs := cli("run", write(t, "c.yaml", small), "--live"); code != int(command.Usage) || !strings.Contains(errs, "--live: the standard error must be a terminal") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
