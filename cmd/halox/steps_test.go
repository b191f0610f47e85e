package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A run with several steps between two exchanges writes the field of one without, and its record says so.
func TestStepsBetweenExchanges(t *testing.T) {
	dir := t.TempDir()
	fieldOf := func(name string, args ...string) []byte {
		t.Helper()
		file := filepath.Join(dir, name+".npy")
		_, r := run(t, small, append(args, "--set", "output.field="+file)...)
		steps := map[string]int{"alone": 0, "four": 4, "resident": 3, "auto": 0}[name] // host devices try nothing
		if r.Run.StepsAnExchange != steps {
			t.Errorf("%s: %d steps an exchange in the record, not %d", name, r.Run.StepsAnExchange, steps)
		}
		bytes, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	want := fieldOf("alone")
	for name, args := range map[string][]string{"four": {"--set", "exchange.steps=4"}, "resident": {"--set", "exchange={scheme: resident, path: direct, steps: 3}"}, "auto": {"--set", "exchange.steps=auto"}} {
		if !bytes.Equal(fieldOf(name, args...), want) {
			t.Errorf("%s: another field", name)
		}
	}
}
