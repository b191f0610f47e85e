package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

func TestMain(m *testing.M) { exampletest.Main(m, "reduction.cu") }

// Device ranks give the sum of the reference on each backend.
func TestSum(t *testing.T) {
	sums := exampletest.Sums{}
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
		exampletest.Ranks(t, newExample, sums, c.devices, "--samples 2 "+c.flags)
	}
}

// The reference tells a sum that is wrong, and that of another iteration.
func TestCheck(t *testing.T) {
	s := testdevices.Host(t, 1)
	_, o, err := newExample().Parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	x, err := newReduction(&halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, iterations := range []int{1, 2} {
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
		if values, err := x.Values(iterations); err != nil || values[0] == values[0] {
			t.Errorf("after a reset the sum is %v, %v", values, err)
		}
		if _, err := x.Run(t.Context(), iterations); err != nil {
			t.Fatal(err)
		}
		values, err := x.Values(iterations)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Check(values, iterations); err != nil {
			t.Error(err)
		}
		if _, err := x.Check(values, iterations+1); err == nil {
			t.Error("the sum of another iteration passes")
		}
		for i := range values {
			wrong := slices.Clone(values)
			wrong[i]++
			if _, err := x.Check(wrong, iterations); err == nil || !strings.Contains(err.Error(), fmt.Sprint(wrong)) {
				t.Errorf("a wrong value %d gives %v", i, err)
			}
		}
	}
}

func TestRejects(t *testing.T) {
	exampletest.Rejects(t, newExample, map[string]string{
		"--numbers -1":            "--numbers must be between 0 and 17179869184, got -1",
		"--iterations 0":          "--iterations must be between 1 and 1048576, got 0",
		"--samples 0":             "--samples must be between 1 and 1000, got 0",
		"--ranks -1":              "--ranks must be between 0 and 65536, got -1",
		"--per-multiprocessor 65": "--per-multiprocessor must be between 0 and 64, got 65",
		"--threads 48":            "--threads 48: must be a multiple of 32",
		"--threads 2048":          "--threads must be between 32 and 512, got 2048",
		"--limit 0s":              "--limit 0s: must be above 0",
		"--limit long":            `invalid value "long"`,
		"more":                    `"more" is not a flag`,
		"--devices -1":            "-1 is negative",
	})
}

func TestCompiles(t *testing.T) { exampletest.Compile(t, source, 64, nil) }
