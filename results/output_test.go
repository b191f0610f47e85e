package results_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/field"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/trace"
)

// What is not a regular file, or larger than any of its kind, is not read.
func TestOnlyFilesAreRead(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge.json")
	if err := errors.Join(os.WriteFile(huge, nil, 0o644), os.Truncate(huge, 1<<30+1)); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	for name, why := range map[string]string{os.DevNull: "it is a device, not a regular file", huge: "it has more than"} {
		_, err := results.Read(name)
		resultstest.WantError(t, err, name, why)
		_, err = trace.Read(name)
		resultstest.WantError(t, err, name, why)
	}
	_, _, err := field.Read(os.DevNull)
	resultstest.WantError(t, err, "it is a device, not a regular file")
}
