package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/testdevices"
)

// With --log json the standard error has one JSON object per line: what happens, in order, and errors.
func TestLog(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	testdevices.Once(t)
	dir := t.TempDir()
	field := filepath.Join(dir, "u.npy")
	for _, tc := range []struct {
		name, want string // messages, without progress
		code       int
		args       []string
	}{
		{"success", "begin output end", 0, []string{"--set", "output.field=" + field}},
		{"notes", "note begin note output end", 0, []string{"-v", "--set", "output.field=" + field}},
		{"quiet", "", 0, []string{"-q", "--set", "output.field=" + field}},
		{"diverged", "begin output! end error!", int(command.Diverged), []string{"--set", "output.field=" + field, "--set", "heat.dt=1e9", "--set", "heat.force=true", "--set", "exact=null"}},
		{"wrong config", "error!", int(command.Config), []string{"--set", "heat.dt=-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, _, errs := cli(append([]string{"run", write(t, "c.yaml", small), "--log", "json"}, tc.args...)...)
			var all []string
			last := map[string]any{}
			for line := range strings.Lines(errs) {
				m := map[string]any{}
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				msg, _ := m["msg"].(string)
				if m["level"] != "INFO" {
					msg += "!"
				}
				if msg != "progress" && (len(all) == 0 || all[len(all)-1] != msg) {
					all = append(all, msg)
				}
				last[msg] = m
			}
			if got := strings.Join(all, " "); got != tc.want || code != tc.code {
				t.Errorf("exit %d, %s, want %s:\n%s", code, got, tc.want, errs)
			}
			if tc.name != "success" {
				return
			}
			for msg, want := range map[string]string{
				"begin":    `"devices":2,"level":"INFO","msg":"begin","path":"staged","precision":"float64","scheme":"assisted","size":[11,8,9],"solver":"heat","steps":40,`,
				"progress": `"unit":"points","what":"writing ` + field + `"}`, "output": `{"file":"` + field + `","kind":"field",`, "end": `"steps":40,"stopped":"iterations",`,
			} {
				if got, _ := json.Marshal(last[msg]); !strings.Contains(string(got), want) {
					t.Errorf("%s: %s, want %s", msg, got, want)
				}
			}
		})
	}
	if code, _, errs := cli("run", "c.yaml", "--log", "yaml"); code != int(command.Usage) || errs != "--log: must be text or json, got \"yaml\"\n" {
		t.Errorf("exit %d: %s", code, errs)
	}
}
