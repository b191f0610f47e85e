package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
)

// full is an output that takes so many bytes.
type full struct{ room int }

func (f *full) Write(data []byte) (int, error) {
	if len(data) <= f.room {
		f.room -= len(data)
		return len(data), nil
	}
	n := f.room
	f.room = 0
	return n, errors.New("no space left on device")
}

// What cannot be printed is an error of every command.
func TestAFullOutput(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.Once(t)
	file, record := write(t, "c.yaml", small), filepath.Join(t.TempDir(), "r.json")
	if code, out, errs := cli("run", file, "--record", record); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	benched := filepath.Join(t.TempDir(), "b.json")
	for _, args := range [][]string{
		{"--help"}, {"help", "run"}, {"--version"}, {"bench"}, {"completion", "bash"},
		{"config", "check", file}, {"config", "new", "heat2d", "-"}, {"config", "new", "heat2d", filepath.Join(t.TempDir(), "new.yaml")},
		{"devices"}, {"plan", file}, {"plan", "--dot", file}, {"verify", file}, {"run", file}, {"results", record},
		{"plot", "--kind", "list"}, {"bench", "pack", "--list"}, {"bench", "pack", "--figure", "list"},
		{"bench", "exchange", "--backend", "host", "--devices", "1", "--points", "8", "--paths", "staged", "--record", benched},
	} {
		var errs strings.Builder
		code := execute(context.Background(), args, &full{10}, &errs)
		if code != int(command.Failed) || !strings.Contains(errs.String(), "the standard output: no space left on device") {
			t.Errorf("%q: exit %d: %s", args, code, errs.String())
		}
	}
	if r, err := results.Read(benched); err != nil || len(r.Rows) == 0 {
		t.Errorf("the record of a bench whose table could not be printed: %+v, %v", r, err)
	}
}
