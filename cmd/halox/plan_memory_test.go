package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// What plan says of the memory is what a run with all its outputs holds, byte for byte.
func TestPlanSaysWhatARunHolds(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	measured(t)
	dir := t.TempDir()
	file := write(t, "c.yaml", planned)
	for _, name := range testdevices.Again(2, testdevices.Some(4, scheme.All())) {
		t.Run(string(name), func(t *testing.T) {
			config, err := loadConfig(t.Context(), 1, file, []string{
				"exchange.scheme=" + string(name), "stop.iterations=5", "stop.tolerance=1e-300", "stop.check_every=2", "exact=sin(x)",
				"output.field=" + filepath.Join(dir, "u.npy"), "output.picture=" + filepath.Join(dir, "u.png"), "output.record=" + filepath.Join(dir, "r.json"),
			})
			test.Check(t, err)
			w := test.Must(openConfig(t.Context(), config, mpi.Alone(), io.Discard, false))(t)
			counted, err := w.Memory(t.Context())
			test.Report(t, closeSetup(w))
			test.Check(t, err)
			s := test.Must(newSolverRun(t.Context(), config, mpi.Alone(), newStatus(io.Discard, nil, false), traceFlags{}))(t)
			test.Check(t, s.run(t.Context(), time.Now(), io.Discard, io.Discard))
			for rank, d := range s.Place.Devices {
				c := counted[rank]
				if got, want := d.Peak(), (streams.Held{Memory: c.Variables + c.Extra, Pinned: c.Pinned}); got != want {
					t.Errorf("%v held %+v; plan says %+v", d, got, c)
				}
			}
			test.Report(t, closeSetup(s.Setup))
		})
	}
}

// A grid that does not fit is refused by all commands, with the numbers and what they are of.
func TestGridsThatDoNotFit(t *testing.T) {
	testdevices.Once(t)
	measured(t)
	file := write(t, "c.yaml", planned)
	for _, args := range [][]string{{"config", "check"}, {"plan"}, {"run"}} {
		code, out, errs := cli(append(args, file, "--set", "grid.size=[20000,20000,20000]")...)
		if code != int(command.Config) || strings.Contains(out, "subdomains") != (args[0] == "plan") { // whose tables show why
			t.Errorf("%v: exit %d: %s", args, code, out)
		}
		for _, says := range []string{"out of memory on the host: 116", " TiB are needed, and ", " are available: ", ": use more devices"} {
			if !strings.Contains(errs, says) {
				t.Errorf("%v: %q is not in:\n%s", args, says, errs)
			}
		}
	}
}
