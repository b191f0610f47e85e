package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// The commands for checkpoints describe a whole one, and say what is wrong with a damaged one.
func TestCheckpoint(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "checkpoints")
	test.Check(t, os.CopyFS(folder, os.DirFS("../../halo/checkpoint/testdata/v1")))
	newest := filepath.Join(folder, "step-000000000008")
	test.Check(t, os.CopyFS(newest, os.DirFS(filepath.Join(folder, "step-000000000007"))))
	empty := t.TempDir()
	for _, tc := range []struct {
		name  string
		args  []string
		code  command.Code
		out   []string
		notes string
	}{
		{"list", []string{"list", folder}, 0, []string{"step  size", "\n8     ", "manifest.json: step: must be 8 as in the name of the folder, got 7",
			"\n7     ", " stored  whole\n"}, ""},
		{"list as JSON", []string{"list", folder, "--json"}, 0, []string{`"step": 7,`, `"run": "stored"`, `"whole": true`, `"reason": "checkpoint: `}, ""},
		{"verify", []string{"verify", folder}, command.CheckFailed, []string{"FAIL  checkpoint: " + newest + ": manifest.json: ", "ok    ", "-000000000007: "},
			folder + ": 1 of 2 checkpoints are whole"},
		{"verify one", []string{"verify", filepath.Join(folder, "step-000000000007")}, 0, []string{"ok    "}, ""},
		{"verify none", []string{"verify", empty}, command.CheckFailed, nil, empty + ": 0 of 0 checkpoints are whole"},
		{"info", []string{"info", folder}, 0, []string{"step 7 of run stored, written 20", "\nv@-1     33 x 9 x 7   float32     3           false       ",
			"\nattributes\n{\n  \"seed\": 9223372036854775815,\n"}, "warning: checkpoint: " + newest},
		{"info as JSON", []string{"info", folder, "--json"}, 0, []string{`"name": "zero@-1",`, `"zstd": true,`, `"seed": 9223372036854775815,`}, ""},
		{"info on none", []string{"info", empty}, command.Failed, nil, "checkpoint: " + empty + ": there is no complete checkpoint"},
		{"a missing folder", []string{"list", filepath.Join(empty, "x")}, command.Failed, nil, "no such file or directory"},
		{"no folder", []string{"list"}, command.Usage, nil, "FOLDER: must be one folder, got 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, notes := cli(append([]string{"checkpoint"}, tc.args...)...)
			if command.Code(code) != tc.code || !strings.Contains(notes, tc.notes) {
				t.Errorf("exit %d, want %d: %s", code, tc.code, notes)
			}
			for _, says := range tc.out {
				if !strings.Contains(out, says) {
					t.Errorf("printed\n%s\nwithout %q", out, says)
				}
			}
			if tc.args[len(tc.args)-1] == "--json" && !json.Valid([]byte(out)) {
				t.Errorf("not JSON:\n%s", out)
			}
		})
	}
}

// A checkpoint whose hash is that of another grid is rejected.
func TestGridHash(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "saved")
	config := write(t, "c.yaml", "solver: heat\ngrid: {size: [12, 14], spacing: 0.1}\nboundary: {y: periodic}\ndevices: {backend: host}\n"+
		"stop: {iterations: 5}\ncheckpoint: {folder: "+folder+"}\n")
	if code, _, notes := cli("run", config); code != 0 {
		t.Fatal(notes)
	}
	saved := test.Must(checkpoint.Open(filepath.Join(folder, "step-000000000005")))(t)
	var attributes map[string]any
	test.Check(t, saved.Attributes(&attributes))
	hash := attributes["grid_hash"].(string)
	if code, out, notes := cli("checkpoint", "info", folder); code != 0 || !strings.Contains(out, "hash of the grid "+hash+"\n") {
		t.Errorf("exit %d: %s%s", code, out, notes)
	}
	attributes["grid_hash"] = "0123456789abcdef"
	grid := test.Must(domain.NewGrid([]int{12, 14}, []bool{false, true}))(t)
	place := test.Must(halo.Place(test.Must(domain.Decompose(grid, domain.Vec{1, 1, 1}))(t), testdevices.Host(t, 1).Devices))(t)
	u := checkpoint.Array{Name: "u", Field: test.Must(halo.NewField(place, halo.Spec{Name: "u", Element: halo.Float64}))(t)}
	w := test.Must(checkpoint.NewWriter(t.Context(), checkpoint.Options{Folder: folder, Run: saved.Run}, u))(t)
	test.Check(t, w.Write(t.Context(), 7, attributes, u), w.Close(t.Context()), u.Field.Close())
	says := "step-000000000007: attributes: grid_hash: must be " + hash + " for the grid of their config, got 0123456789abcdef"
	for want, args := range map[command.Code][]string{command.CheckFailed: {"checkpoint", "info", folder}, command.Config: {"run", config, "--restart"}} {
		if code, _, notes := cli(args...); command.Code(code) != want || !strings.Contains(notes, says) {
			t.Errorf("%v: exit %d: %s", args, code, notes)
		}
	}
}
