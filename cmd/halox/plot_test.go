package main

import (
	"bytes"
	"errors"
	"image/gif"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/trace"
)

// kept returns the path of a record of an H200 among the test data.
func kept(name string) string {
	return filepath.Join("..", "..", "results", "testdata", name+".json")
}

// What benches and runs write is drawn and printed by the commands for records, alone
// and together.
func TestPlotWhatWasMeasured(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("HALOX_CACHE", at("cache"))
	for _, args := range [][]string{
		{"bench", "exchange", "--backend", "host", "--devices", "2", "--points", "4,8", "--paths", "direct,staged", "--record", at("exchange.json")},
		{"bench", "pack", "--backend", "host", "--budget", "50us", "--figure", "hand-9", "--most", "2000", "--record", at("pack.json")},
		{"bench", "pingpong", "--backend", "host", "--budget", "50us", "--match", "jenkins/vector-512/blocks=128", "--record", at("pingpong.json")},
		{"run", write(t, "c.yaml", small), "-q", "--history", "--record", at("run.json")},
		{"run", write(t, "c.yaml", small), "-q", "--set", "devices.count=1", "--record", at("alone.json")},
	} {
		if code, _, errs := cli(args...); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs)
		}
	}
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"exchange", []string{at("exchange.json")}},
		{"pack", []string{at("pack.json"), "--where", "direction=pack"}},
		{"figure", []string{at("pack.json"), "--kind", "hand-9"}},
		{"pingpong", []string{at("pingpong.json"), "--x", "block", "--y", "share", "--by", "path"}},
		{"history", []string{at("run.json")}},
		{"two runs", []string{at("run.json"), at("alone.json")}},
		{"scaling", []string{at("run.json"), at("alone.json"), "--kind", "scaling"}},
		{"figure of an old record", []string{kept("pack"), "--kind", "wu-7"}}, // which has the driver's copies alone
		{"old and new", []string{at("exchange.json"), kept("exchange")}},
	} {
		out := at(tc.name + ".svg")
		code, printed, errs := cli(append([]string{"plot", "-o", out}, tc.args...)...)
		if code != 0 || printed != "wrote "+out+"\n" || errs != "" {
			t.Errorf("%s: exit %d: %s%s", tc.name, code, printed, errs)
			continue
		}
		drawn(t, out)
	}
	both, err := os.ReadFile(at("old and new.svg"))
	if err != nil || !strings.Contains(string(both), "measured on different machines") || !strings.Contains(string(both), "NVIDIA H200") {
		t.Errorf("the machines are not named: %v", err)
	}
	code, out, errs := cli("results", at("run.json"), at("alone.json"))
	if code != 0 || !strings.Contains(out, "\nalone.json ") || !strings.Contains(out, "step (us)") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// Fields that a run wrote are drawn with what its record knows, and those of several steps in a film; tables are charts.
func TestPlotFields(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	testdevices.Once(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	config := write(t, "c.yaml", "solver: heat\ngrid: {size: [6, 5, 4]}\nheat: {dt: 1e-3}\nboundary: {x-: {dirichlet: 2 + t}}\nstop: {iterations: 8}\n")
	for _, n := range []string{"4", "10"} {
		if code, _, errs := cli("run", config, "-q", "--set", "stop.iterations="+n, "--set", "devices.backend=host", "--set", "devices.count=2",
			"--set", "output.field="+at("u"+n+".npy"), "--set", "unit=K", "--set", "output.colors=black-body", "--set", "output.range=[0, 3]", "--set", "output.picture="+at("run.svg"), "--record", at("run.json")); code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
	}
	test.Check(t, os.WriteFile(at("p.csv"), []byte("step,time,u\n0,0,1\n10,0.5,2\n"), 0o644))
	for _, tc := range []struct {
		name string
		args []string
		want []string // texts in the drawing
	}{
		{"u10.npy", []string{"--run", at("run.json")}, []string{">heat, t = 0.01 (step 10), z = 0.6<", ">x<", ">u (K)<", ">0<", ">1.0<", ">2.0<"}},
		{"u4.npy", []string{"--run", at("run.json"), "--slice", "x=1", "--title", "a b", "--label", "T (K)"}, []string{">a b<", ">z<", ">T (K)<"}},
		{"u4.npy", nil, []string{">u, step 4, z=2<", ">x (index)<"}},
		{"u10.npy", []string{"--line", "y=2,z=1.0", "--range", "0:3"}, []string{">u, step 10, y=2, z=3<", ">3<"}},
		{"u?0.npy", []string{"--run", at("run.json"), "--line", "0,0.5,0.5:1,0.5,0.5"}, []string{"from (0,0.5,0.5) to (1,0.5,0.5)", ">distance<"}},
		{"u*.npy", []string{"--run", at("run.json"), "--line", "x"}, []string{">heat, y = 0.5, z = 0.6<", ">t = 0.004 (step 4)<", ">t = 0.01 (step 10)<"}},
		{"p.csv", []string{"--label", "u (K)"}, []string{">time<", ">u (K)<"}},
	} {
		svg, args := at("out.svg"), []string{"plot", "-o", at("out.svg")}
		args = append(args, test.Must(filepath.Glob(at(tc.name)))(t)...)
		code, out, errs := cli(append(args, tc.args...)...)
		if code != 0 || out != "wrote "+svg+"\n" || errs != "" {
			t.Errorf("%s %v: exit %d, %s%s", tc.name, tc.args, code, out, errs)
			continue
		}
		text := string(test.Must(os.ReadFile(svg))(t))
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %v: the drawing lacks %s", tc.name, tc.args, want)
			}
		}
	}
	own, drawn := test.Must(os.ReadFile(at("run.svg")))(t), at("again.svg")
	if code, _, errs := cli("plot", at("u10.npy"), "--run", at("run.json"), "-o", drawn); code != 0 || string(test.Must(os.ReadFile(drawn))(t)) != string(own) {
		t.Errorf("exit %d: the picture of the run is another than that of its field: %s", code, errs)
	}
	code, _, errs := cli("plot", at("u10.npy"), at("u4.npy"), "-o", at("u.gif"), "--size", "200", "--frames-per-second", "5")
	film, err := gif.DecodeAll(bytes.NewReader(test.Must(os.ReadFile(at("u.gif")))(t)))
	if code != 0 || err != nil || len(film.Image) != 2 || film.Delay[0] != 20 || film.Config.Width != 200 {
		t.Errorf("exit %d, %s, %v", code, errs, err)
	}
	for _, tc := range []struct{ want, args string }{
		{"--slice: must be in the grid, from z=0 to z=3, got z=4", "u4.npy --slice z=4"},
		{"--line: must be an axis", "u4.npy --line w"},
		{`--range: must be min:max, such as 0:1 or 0:, got "3:1"`, "u4.npy --range 3:1"},
		{`--colors: must be one of viridis, black-body, blue-red, got "pink"`, "u4.npy --colors pink"},
		{"--size: must be between 64 and 16384, got 9", "u4.npy --size 9"},
		{"only a picture of the format .png has a width", "u4.npy --size 900"},
		{"-o: must end in .gif or .apng for 2 fields", "u4.npy u10.npy"},
		{"FILE: must be fields, tables or records alone", "u4.npy p.csv"},
		{"FILE: must be one table, got 2", "p.csv p.csv"},
		{"--by: must not be set for fields, only for records", "u4.npy --by x"},
		{"--slice: must not be set for tables, only for fields", "p.csv --slice z=1"},
		{`p.csv: has no column "v"; there are step, time, u`, "p.csv --y v"},
		{"--run: " + kept("pack") + " must be the record of a run, but is of kind pack", "u4.npy --run " + kept("pack")},
		{"its grid must be that of the run, ", "u4.npy --run " + kept("run")},
		{"no such file", "missing.npy"},
	} {
		args := []string{"plot", "-o", at("no.svg")}
		for _, arg := range strings.Fields(tc.args) {
			if ext := filepath.Ext(arg); ext == ".npy" || ext == ".csv" {
				arg = at(arg)
			}
			args = append(args, arg)
		}
		code, out, errs := cli(args...)
		if _, err := os.Stat(at("no.svg")); code == 0 || out != "" || !strings.Contains(errs, tc.want) || err == nil {
			t.Errorf("%s: exit %d, %q, want %q", tc.args, code, errs, tc.want)
		}
	}
}

func TestPlotLists(t *testing.T) {
	testdevices.Once(t)
	code, out, _ := cli("plot", "--kind", "list")
	if want := len(maps.Collect(plot.Kinds())) + len(datatypes.Figures()); code != 0 || strings.Count(out, "\n") != want {
		t.Errorf("exit %d, %d plots wanted:\n%s", code, want, out)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		if name, _, _ := strings.Cut(line, " "); seen[name] {
			t.Errorf("two are called %s", name)
		} else {
			seen[name] = true
		}
	}
}

// Of records and traces, as *.json may be, traces are left out.
func TestTracesBesideRecords(t *testing.T) {
	folder := t.TempDir()
	record, traced := filepath.Join(folder, "a.json"), filepath.Join(folder, "t.json")
	r := &results.Record{Kind: results.KindSchemes}
	r.Add(results.NewRow().Label("scheme", "assisted").Label("points", 8).Number(results.Step, 3))
	test.Check(t, errors.Join(r.Write(record), new(trace.Trace).Write(traced)))
	note := "left out, as they are traces, which halox plot draws one by one: " + traced + "\n"
	if code, out, errs := cli("results", record, traced); code != 0 || errs != note || !strings.Contains(out, "assisted") {
		t.Errorf("exit %d: %q, %q", code, out, errs)
	}
	svg := filepath.Join(folder, "out.svg")
	if code, out, errs := cli("plot", traced, record, "-o", svg, "--kind", "bars", "--x", "scheme", "--y", "step"); code != 0 || errs != note {
		t.Errorf("exit %d: %q, %q", code, out, errs)
	}
	if code, _, errs := cli("results", traced); code == 0 || !strings.Contains(errs, "not a record but a trace") {
		t.Errorf("a trace alone: exit %d, %q", code, errs)
	}
}

func TestPlotRefuses(t *testing.T) {
	testdevices.Once(t)
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.json")
	test.Check(t, os.WriteFile(cut, []byte(`{"schema": 2, "kind": "pa`), 0o644))
	svg := filepath.Join(dir, "p.svg")
	empty := filepath.Join(dir, "t.json")
	test.Check(t, new(trace.Trace).Write(empty))
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"no file", "FILE: must be at least one file", []string{"-o", svg}},
		{"nowhere", "-o: must name a file", []string{kept("run")}},
		{"another format", "must end in .png, .svg, .pdf", []string{kept("run"), "-o", "p.gif"}},
		{"over itself", "is one of the files to draw", []string{cut, "-o", cut}},
		{"missing", "no such file", []string{"missing.json", "-o", svg}},
		{"a device", "it is a device, not a regular file", []string{os.DevNull, "-o", svg}},
		{"cut short", "cut.json: truncated", []string{cut, "-o", svg}},
		{"mixed", "choose a plot", []string{kept("pack"), kept("run"), "-o", svg}},
		{"no plot", `got "pie"`, []string{kept("pack"), "--kind", "pie", "-o", svg}},
		{"no condition", `--where: a condition must be label=value, got "n"`, []string{kept("pack"), "--where", "n", "-o", svg}},
		{"a figure of two", "--kind wu-7: must have one record, got 2", []string{kept("pack"), kept("pack"), "--kind", "wu-7", "-o", svg}},
		{"a figure of others", "--kind wu-7 draws records of kind pack; run.json is of kind run", []string{kept("run"), "--kind", "wu-7", "-o", svg}},
		{"a figure over something", "has its own --x", []string{kept("pack"), "--kind", "wu-7", "--x", "n", "-o", svg}},
		{"a figure of nothing", "has none of the layouts", []string{kept("pack"), "--kind", "hand-4", "-o", svg}},
		{"two traces", "trace", []string{empty, empty, "-o", svg}},
		{"another kind of a trace", "trace", []string{empty, "--kind", "run", "-o", svg}},
		{"a trace of nothing", "t.json: the trace is empty", []string{empty, "-o", svg}},
		{"a history of something else", "history has fixed X, Y and curves", []string{kept("history"), "--y", "updates", "-o", svg}},
		{"no such label", `no row has the label "edge"; there are suite`, []string{kept("pack"), "--by", "edge", "-o", svg}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if code, out, errs := cli(append([]string{"plot"}, tc.args...)...); code == 0 || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("exit %d, %q, %q, want %q", code, out, errs, tc.want)
			}
			if _, err := os.Stat(svg); err == nil {
				t.Error("a plot was written")
			}
		})
	}
}

func TestResults(t *testing.T) {
	for _, format := range results.Formats() {
		code, out, errs := cli("results", kept("pingpong"), kept("pack"), "--format", format)
		if code != 0 || errs != "" || strings.Count(out, "pingpong.json") < 4 || !strings.Contains(out, "targeted") {
			t.Errorf("%s: exit %d, %s:\n%s", format, code, errs, out)
		}
	}
	for want, args := range map[string][]string{
		`--format: must be one of text, markdown, csv, got "html"`: {kept("pack"), "--format", "html"},
		"FILE: must be at least one file, got none: halox results": {},
		"no such file": {"missing.json"},
	} {
		if code, out, errs := cli(append([]string{"results"}, args...)...); code == 0 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("exit %d, %q, %q, want %q", code, out, errs, want)
		}
	}
}
