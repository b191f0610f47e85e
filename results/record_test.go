package results_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
)

// finished is the record of a run in which everything applied.
func finished() *results.Record {
	link := func(to int) []results.Link {
		return []results.Link{{To: to, Kind: "nvlink", PeerAccess: true, Path: "peer"}}
	}
	r := &results.Record{
		Schema:  results.SchemaVersion,
		Kind:    results.KindRun,
		Halox:   results.Program{Version: "0.1.0", Commit: "0123abc"},
		Command: []string{"run", "heat.yaml", "--history"},
		Settings: map[string]any{
			"solver":    "heat",
			"precision": "float64",
			"grid":      map[string]any{"size": []int{512, 512, 256}},
		},
		Host: results.Host{
			Name: "node1", OS: "linux", Arch: "amd64", CPU: "Some CPU", Cores: 64,
			MemoryBytes: 1 << 39, Driver: "570.1", CUDA: "12.8",
		},
		Started: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
		Devices: []results.Device{
			{ID: 0, Name: "NVIDIA H200", Backend: "cuda", MemoryBytes: 150_000_000_000, PCIBusID: "0000:18:00.0",
				Clocks: &results.Clocks{Cores: 1980, Memory: 3201}, Links: link(1)},
			{ID: 1, Name: "NVIDIA H200", Backend: "cuda", MemoryBytes: 150_000_000_000, PCIBusID: "0000:2a:00.0", Links: link(0)},
		},
		Run: finishedRun(),
	}
	r.Add(r.RunRow())
	return r
}

func finishedRun() *results.Run {
	return &results.Run{
		Scheme: "two-stream", Order: "left-right", Path: "peer",
		Decomposition: [3]int{2, 1, 1},
		Subdomains: []results.Subdomain{
			{Device: 0, Lo: [3]int{0, 0, 0}, Hi: [3]int{256, 512, 256}},
			{Device: 1, Lo: [3]int{256, 0, 0}, Hi: [3]int{512, 512, 256}},
		},
		Iterations: 1000,
		Stopped:    results.StopIterations,
		Norms: results.Norms{
			MaxChange: results.Number(1.25e-7), L2Change: results.Number(3.5e-4),
			L2Norm: results.Number(0.25), MaxNorm: results.Number(1),
		},
		Residual:         results.Number(0.625),
		Error:            &results.ErrorNorms{L2: results.Number(0), Max: results.Number(2e-6)},
		SetupSeconds:     results.Number(0.5),
		LoopSeconds:      results.Number(3.25),
		UpdatesPerSecond: results.Number(2.0648881e10),
		BytesExchanged:   2_097_152_000,
		Time:             results.Number(6.3e-4),
		DT:               results.Number(6.3e-7),
		History: []results.Check{
			{Iteration: 500, Norms: results.Norms{MaxChange: results.Number(1e-5)}},
			{Iteration: 1000, Norms: results.Norms{MaxChange: results.Number(1.25e-7)}},
		},
	}
}

// The file itself is golden: its keys are what others read.
func TestRecordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "yet", "there", "record.json")
	check(t, finished().Write(path))
	text := string(resultstest.ReadFile(t, path))
	golden(t, "record.json", text)
	marked := filepath.Join(t.TempDir(), "marked.json") // as Windows editors save it
	check(t, os.WriteFile(marked, []byte("\ufeff"+text), 0o644))
	check(t, readRecord(marked))
	if names := resultstest.Files(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("the folder holds %v, want the record alone", names)
	}
}

func TestRecordLeavesOutWhatDoesNotApply(t *testing.T) {
	record := &results.Record{
		Kind: results.KindRun, Failure: "no device left",
		Run: &results.Run{
			Stopped: results.StopError,
			Norms:   results.Norms{MaxChange: results.Number(math.NaN()), MaxNorm: results.Number(0)},
		},
	}
	path := filepath.Join(t.TempDir(), "record.json")
	check(t, record.Write(path))
	var file map[string]any
	check(t, json.Unmarshal(resultstest.ReadFile(t, path), &file))
	keys := file["run"].(map[string]any)
	if v, ok := keys["max_norm"]; !ok || v != 0.0 {
		t.Errorf("max_norm is %v (present %t), want a real zero", v, ok)
	}
	for _, key := range []string{
		"max_change", "l2_change", "l2_norm", "error", "setup_seconds", "loop_seconds", "updates_per_second",
		"time", "dt", "decomposition", "order", "history",
	} {
		if v, ok := keys[key]; ok {
			t.Errorf("%s is %v, want it absent", key, v)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if p := results.Number(v); p != nil {
			t.Errorf("Number(%g) = %g, want nil", v, *p)
		}
	}
	for _, v := range []float64{0, math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.MaxFloat64} {
		if p := results.Number(v); p == nil || math.Float64bits(*p) != math.Float64bits(v) {
			t.Errorf("Number(%g) = %v, want the same bits", v, p)
		}
	}
}

// TestRecordRoundTrip draws records and expects each back from its file, bit by
// bit, and the same bytes when it is written again.
func TestRecordRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want := drawRecord(t)
		first, second := filepath.Join(dir, "first.json"), filepath.Join(dir, "second.json")
		check(t, want.Write(first))
		got, err := results.Read(first)
		check(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("record (-want +got):\n%s", diff)
		}
		check(t, got.Write(second))
		a, errA := os.ReadFile(first)
		b, errB := os.ReadFile(second)
		if errA != nil || errB != nil || !slices.Equal(a, b) {
			t.Fatalf("written again, the record has changed:\n%s\n%s", a, b)
		}
	})
}

// text is what a record keeps: all that can be shown, and line breaks and tabs.
var text = rapid.StringOf(rapid.RuneFrom([]rune(" \n\t\"\\/?"), unicode.L, unicode.M, unicode.N, unicode.P, unicode.S))

func drawRecord(t *rapid.T) *results.Record {
	number := rapid.Custom(func(t *rapid.T) *float64 {
		return results.Number(rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(0.0)).Draw(t, "number"))
	})
	norms := rapid.Custom(func(t *rapid.T) results.Norms {
		return results.Norms{
			MaxChange: number.Draw(t, "max change"), L2Change: number.Draw(t, "l2 change"),
			L2Norm: number.Draw(t, "l2 norm"), MaxNorm: number.Draw(t, "max norm"),
		}
	})
	record := finished()
	run := record.Run
	record.Settings = map[string]any{"note": text.Draw(t, "note"), "big": json.Number("9007199254740993")}
	run.Norms = norms.Draw(t, "norms")
	run.Error = &results.ErrorNorms{L2: number.Draw(t, "l2"), Max: number.Draw(t, "max")}
	run.Time, run.DT = number.Draw(t, "time"), number.Draw(t, "dt")
	run.UpdatesPerSecond = number.Draw(t, "speed")
	run.BytesExchanged = rapid.Int64Min(0).Draw(t, "bytes")
	record.Failure = text.Draw(t, "failure")
	run.History = nil
	for i := range rapid.IntRange(0, 3).Draw(t, "checks") {
		run.History = append(run.History, results.Check{Iteration: i, Norms: norms.Draw(t, "check")})
	}
	record.Rows = rapid.SliceOfN(rapid.Custom(drawRow), 1, 4).Draw(t, "rows")
	return record
}

// drawRow draws labels and values of any kind.
func drawRow(t *rapid.T) results.Row {
	row := results.NewRow()
	for _, name := range rapid.SliceOfNDistinct(text, 0, 4, rapid.ID).Draw(t, "names") {
		if rapid.Bool().Draw(t, "a number") {
			row = row.Label(name, rapid.Float64().Draw(t, "number"))
		} else {
			row = row.Label(name, text.Draw(t, "text"))
		}
	}
	for _, m := range results.Metrics() {
		if n := rapid.IntRange(0, 8).Draw(t, "n"); n > 0 {
			row = row.Value(m, measure.NewSample(rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "all")))
		}
	}
	row.Checked, row.Note = rapid.Bool().Draw(t, "checked"), text.Draw(t, "note")
	return row
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct{ name, content, want string }{
		{"no JSON", "solver: heat", "not JSON at byte 1: invalid character"},
		{"nothing", " \n", "the file is empty"},
		{"another JSON file", `{"name": "x"}`, "not a halox record"},
		{"a list", `[1, 2]`, "not a halox record"},
		{"a trace", `{"traceEvents": [], "otherData": {"format": "halox trace", "schema": 1}}`, "not a record but a trace"},
		{"another's schema", `{"schema": "https://json-schema.org"}`, "not a halox record"},
		{"no schema yet", `{"schema": 0}`, "its schema version is 0"},
		{"half a schema", `{"schema": 1.5}`, "its schema version is 1.5"},
		{"newer schema", `{"schema": 3, "rows": {"done": 3}}`, "the schema version must be 2, got 3"},
		{"cut short", `{"schema": 2, "kind": "run`, "truncated after 26 bytes"},
		{"no kind", `{"schema": 2, "rows": []}`, `it has no "kind"`},
		{"older schema", `{"schema": 1, "rows": []}`, "the schema version must be 2, got 1"},
		{"rows of another form", `{"schema": 2, "kind": "pack", "rows": {"a": 1}}`, "cannot unmarshal"},
		{"a label that is a list", `{"schema": 2, "kind": "pack", "rows": [{"labels": {"a": [1]}, "values": {}}]}`, `label "a" is [1], want a string or a number`},
		{"a value that is a number", `{"schema": 2, "kind": "pack", "rows": [{"labels": {}, "values": {"time": 3}}]}`, `value "time"`},
		{"a value without a unit", `{"schema": 2, "kind": "pack", "rows": [{"labels": {}, "values": {"time": {"value": 3}}}]}`, `value "time": must have a unit`},
		{"many labels", `{"schema": 2, "kind": "pack", "rows": [` + manyRows(`{"labels": {"a%d": 1}, "values": {}}`) + `]}`, "must have at most 256 labels and metrics, exceeded in row 257"},
		{"many units", `{"schema": 2, "kind": "pack", "rows": [` + manyRows(`{"labels": {}, "values": {"time": {"unit": "%d", "value": 1}}}`) + `]}`, "at most 256 labels and metrics"},
		{"a long value", `{"schema": 2, "kind": "pack", "rows": [{"labels": {"a": ["` + strings.Repeat("x", 1e6) + `"]}, "values": {}}]}`, strings.Repeat("x", 150)},
		{"a value of nothing", `{"schema": 2, "kind": "pack", "rows": [{"labels": {}, "values": {"time": {"unit": "us"}}}]}`, "must have a value or a median"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(dir, "record.json")
			check(t, os.WriteFile(path, []byte(tc.content), 0o644))
			err := readRecord(path)
			if resultstest.WantError(t, err, path, tc.want); len(err.Error()) > len(path)+300 {
				t.Errorf("%d characters", len(err.Error()))
			}
		})
	}
	missing := filepath.Join(dir, "missing.json")
	resultstest.WantError(t, readRecord(missing), missing, "no such file")
}

// manyRows returns 300 rows of a form with a number.
func manyRows(form string) string {
	rows := make([]string, 300)
	for i := range rows {
		rows[i] = fmt.Sprintf(form, i)
	}
	return strings.Join(rows, ",")
}

func TestWriteFailureKeepsTheOldRecord(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "record.json")
	check(t, finished().Write(path))
	before := resultstest.ReadFile(t, path)
	bad := finished()
	bad.Settings = map[string]any{"tolerance": math.Inf(1)}
	resultstest.WantError(t, bad.Write(path), path, "unsupported value")
	if !slices.Equal(before, resultstest.ReadFile(t, path)) {
		t.Error("a record that could not be written has changed the one that was there")
	}
	for want, bad := range map[string]*results.Record{
		`unknown kind "walk"`:          {Kind: "walk"},
		`row 1: unknown metric "stpe"`: {Kind: results.KindPack, Rows: []results.Row{results.NewRow().Number("stpe", 3)}},
	} {
		resultstest.WantError(t, bad.Write(path), path, want)
	}
	folder := filepath.Join(dir, "folder")
	check(t, os.MkdirAll(filepath.Join(folder, "full"), 0o755))
	resultstest.WantError(t, finished().Write(folder), folder, "write record")
	if names := resultstest.Files(t, dir); len(names) != 2 {
		t.Errorf("the folder holds %v, want the record and the folder", names)
	}
}

func readRecord(path string) error {
	_, err := results.Read(path)
	return err
}
