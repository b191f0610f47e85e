package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// cut leaves the first rows of a record, as if the bench had been interrupted after them,
// and changes what else is wanted.
func cut(t *testing.T, file string, rows int, change func(r *results.Record)) {
	t.Helper()
	r := test.Must(results.Read(file))(t)
	r.Rows, r.Interrupted = r.Rows[:rows], true
	change(r)
	test.Check(t, r.Write(file))
}

// A bench that was interrupted goes on: the rows that it has stay as they are, the others
// are measured, and the record is whole.
func TestBenchResumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "e.json")
	args := []string{"bench", "exchange", "--backend", "host", "--devices", "2", "--points", "4,8", "--paths", "peer,staged"}
	if code, _, errs := cli(append(args, "--record", file)...); code != 0 {
		t.Fatal(errs)
	}
	const note = "of the first time"
	cut(t, file, 3, func(r *results.Record) { r.Rows[1].Note = note })
	first := test.Must(results.Read(file))(t)
	code, out, errs := cli(append(args, "--resume", file, "-v")...)
	if code != 0 || !strings.Contains(errs, "\nexchange: 1 of 1 parts in 0s\n") || strings.Contains(out, "interrupted") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	r, err := results.Read(file)
	test.Check(t, err)
	if len(r.Rows) != 4 || r.Rows[1].Note != note || r.Interrupted || len(r.Resumed) != 1 || !r.Started.Equal(first.Started) {
		t.Errorf("%+v", r)
	}
	other := filepath.Join(t.TempDir(), "whole.json")
	if code, _, errs := cli(append(args, "--resume", file, "--record", other)...); code != 0 {
		t.Error(errs)
	}
	if r, err = results.Read(other); err != nil || len(r.Rows) != 4 || len(r.Resumed) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What does not belong together is not mixed, and what differs is named; the record stays
// as it is.
func TestBenchResumesNothingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "e.json")
	args := []string{"bench", "exchange", "--backend", "host", "--devices", "2", "--points", "4", "--paths", "peer"}
	if code, _, errs := cli(append(args, "--record", file)...); code != 0 {
		t.Fatal(errs)
	}
	whole := test.Must(os.ReadFile(file))(t)
	for _, tc := range []struct {
		name   string
		change func(r *results.Record)
		flags  []string
		says   []string
	}{
		{"other settings", nil, []string{"--fields", "2", "--radii", "2"}, []string{`setting fields was ["1"], is ["2"]`, `; setting radii was ["1"], is ["2"]`}},
		{"another number of devices", nil, []string{"--devices", "3"}, []string{"the devices was host 0 ", "setting devices was 2, is 3"}},
		{"no record", func(r *results.Record) { os.WriteFile(file, []byte("{"), 0o644) }, nil, []string{"--resume: results: read record", "truncated"}},
		{"nothing there", func(r *results.Record) { os.Remove(file) }, nil, []string{"--resume: results: read record", "no such file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			test.Check(t, os.WriteFile(file, whole, 0o644))
			if tc.change != nil {
				r := test.Must(results.Read(file))(t)
				if tc.change(r); !strings.HasPrefix(tc.name, "no") {
					test.Check(t, r.Write(file))
				}
			}
			before, _ := os.ReadFile(file)
			code, _, errs := cli(append(append(args, "--resume", file), tc.flags...)...)
			for _, says := range tc.says {
				if code == 0 || !strings.Contains(errs, says) {
					t.Errorf("exit %d, want %q in %s", code, says, errs)
				}
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the record was written over")
			}
		})
	}
}

// A bench that is interrupted while its devices are opened leaves the record as it was, and says so
// by its exit code.
func TestBenchInterruptedBeforeItMeasures(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := write(t, "e.json", "an older record")
	for _, name := range []string{"exchange", "links", "latency", "pack", "pingpong", "sweep", "schemes", "scaling", "checkpoint"} {
		var out, errs strings.Builder
		code := execute(ctx, []string{"bench", name, "--backend", "host", "--record", file}, &out, &errs)
		if text, err := os.ReadFile(file); code != int(command.Interrupted) || out.String()+errs.String() != "" || err != nil || string(text) != "an older record" {
			t.Errorf("%s: exit %d: %s%s, %q, %v", name, code, out.String(), errs.String(), text, err)
		}
	}
}

// A bench that is interrupted while it measures keeps what it had.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out, errs strings.Builder
	file := filepath.Join(t.TempDir(), "e.json")
	code := execute(ctx, []string{"bench", "exchange", "--backend", "host", "--devices", "2", "--points", "8", "--radii", "1,2,3,4,5,6", "--fields", "1,2,3,4,5,6", "--record", file}, &out, &errs)
	if r, err := results.Read(file); code != int(command.Interrupted) || errs.String() != "" || err != nil || !r.Interrupted {
		t.Errorf("exit %d: %s, %v", code, errs.String(), err)
	}
}

// A record that ends anywhere goes on: rows that it has stay, and the new ones are compared with them.
func TestBenchResumesAnywhere(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testdevices.Once(t)
	for _, tc := range []struct {
		args      string
		has       results.Metric // each row
		from, cut int            // cuts of the record that are tried: after each such number of rows
	}{
		{"links --device-ids 0,1 --sizes 64,128 --paths peer --modes one-way --budget 100us", results.Time, 12, 2},
		{"scaling --device-counts 1,2 --points 8 --precisions float64 --schemes two-stream --budget 1ms", results.Efficiency, 0, 1},
		{"scaling --device-counts 1,2 --points 8 --precisions float64 --schemes fused --exchange-steps 1,3 --budget 1ms", results.Efficiency, 2, 2},
		{"checkpoint --what steps,read --device-counts 1,2 --points 8 --precisions float64 --schemes fused --every 2 --budget 1ms", results.Time, 0, 2},
		{"schemes --device-counts 2 --points 6 --precisions float64 --budget 1ms", results.OverBaseline, 4, 16},
	} {
		args := append(strings.Fields(tc.args), "--backend", "host")
		_, whole := measure(t, args...)
		file := filepath.Join(t.TempDir(), "r.json")
		for rows := tc.from; rows < len(whole.Rows); rows += tc.cut {
			part := *whole
			part.Rows, part.Interrupted = whole.Rows[:rows], true
			test.Check(t, part.Write(file))
			_, r := measure(t, append(args, "--resume", file)...)
			if len(r.Rows) != len(whole.Rows) || r.Interrupted {
				t.Errorf("%s: after %d rows: %d, want %d", tc.args, rows, len(r.Rows), len(whole.Rows))
				continue
			}
			for i, row := range r.Rows {
				if _, ok := row.Get(tc.has); !ok {
					t.Errorf("%s: after %d rows no %s: %s", tc.args, rows, tc.has, bench.NameOf(row))
				}
				for m, kept := range map[results.Metric]bool{results.Step: i < rows, results.CopyTime: true} { // which rows kept bound
					if old, ok := whole.Rows[i].Get(m); ok && kept && row.Median(m) != old.Median {
						t.Errorf("%s: after %d rows row %d has another %s", tc.args, rows, i, m)
					}
				}
			}
		}
	}
}
