package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
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
		{"info on none", []string{"info", empty}, command.Failed, nil, "checkpoint: " + empty + ": there is no whole checkpoint"},
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
