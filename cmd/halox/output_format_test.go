package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results/output"
)

// The format .max is known to this file alone: that a config can name it, and a run writes it, shows that a format is
// one file.
func init() {
	output.Register(output.Format{Kind: output.Field, Extension: ".max", Write: func(w io.Writer, run *output.Run) error {
		largest, points := 0.0, 0
		err := run.Chunks(func(values []float64) error {
			points += len(values)
			for _, v := range values {
				largest = max(largest, v)
			}
			return nil
		})
		if err == nil {
			_, err = fmt.Fprintf(w, "%s: %d points of %d, largest %.3g\n", run.Moment, points, run.Grid.Points(), largest)
		}
		return err
	}})
}

func TestANewOutputFormatIsOneFile(t *testing.T) {
	testdevices.Once(t)
	file := filepath.Join(t.TempDir(), "u.max")
	config := write(t, "c.yaml", small)
	code, out, errs := cli("run", config, "--set", "output.field="+file, "--set", "stop.iterations=3")
	if code != 0 || !strings.Contains(out, "wrote "+file) {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "(step 3): ") {
		t.Errorf("%q, %v", text, err)
	}
	code, _, errs = cli("run", config, "--set", "output.field=u.gif")
	if code != int(command.Config) || !strings.Contains(errs, "a file that ends in .npy, .vti or .max") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
