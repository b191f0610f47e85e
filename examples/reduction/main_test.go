package main

import (
	"slices"
	"testing"

	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

var tests = exampletest.Ranks{New: newProgram}

func TestMain(m *testing.M) { exampletest.Main(m, "reduction.cu") }

// Device ranks give the sum of the reference on each backend.
func TestSum(t *testing.T) {
	for _, c := range []struct {
		devices int
		flags   string
	}{
		{1, "--ranks 1 --numbers 1 --iterations 1"},
		{1, "--ranks 7 --numbers 1001 --iterations 4"},
		{1, "--ranks 4 --numbers 0 --iterations 2"},
		{2, "--ranks 3 --numbers 5 --iterations 3"},
		{2, "--ranks 5 --numbers 4099 --iterations 6 --threads 96"},
		{3, "--ranks 2 --numbers 2003 --iterations 5 --threads 32"},
		{4, "--ranks 3 --numbers 777 --iterations 5"},
	} {
		tests.OneAnswer(t, c.devices, "--samples 2 "+c.flags)
	}
}

// The reference tells a sum that is wrong, and that of another iteration.
func TestCheck(t *testing.T) {
	x := test.Must(newReduction(exampletest.Setup(t, testdevices.Host(t, 1), 1, 2), 1000))(t)
	test.Check(t, x.Reset())
	test.Must(x.Run(t.Context(), 2))(t)
	values := test.Must(x.Values(2))(t)
	if _, err := x.Check(values, 2); err != nil {
		t.Error(err)
	}
	if _, err := x.Check(values, 3); err == nil {
		t.Error("the sum of another iteration passes")
	}
	for i := range values {
		wrong := slices.Clone(values)
		wrong[i]++
		if _, err := x.Check(wrong, 2); err == nil {
			t.Errorf("a wrong value %d passes", i)
		}
	}
}

func TestRejects(t *testing.T) {
	tests.Rejects(t, map[string]string{
		"--numbers -1":            "--numbers must be between 0 and 4294967296, got -1",
		"--iterations 0":          "--iterations and --samples must be at least 1",
		"--samples 0":             "--iterations and --samples must be at least 1",
		"--ranks -1":              "must be at least 0, got -1 and 4",
		"--per-multiprocessor -1": "must be at least 0, got 0 and -1",
		"--threads 48":            "must be a multiple of 32 up to 1024, got 48",
		"--limit -1s":             "Limit must not be negative, got -1s",
		"--limit long":            `invalid value "long"`,
		"more":                    `"more" is not a flag`,
		"--devices -1":            "must not be negative, got -1",
	})
}

func TestCompiles(t *testing.T) { exampletest.Compile(t, source(128), 64, nil) }
