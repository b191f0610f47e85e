package solvers_test

import (
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// What is nil is an error that says so.
func TestWhatIsNilIsRefused(t *testing.T) {
	set := testdevices.Host(t, 1)
	made := func(_ *solvers.Solver, err error) error { return err }
	tried := func(_ []scheme.Trial, _ bool, err error) error { return err }
	for name, err := range map[string]error{
		"no problem":             made(solvers.New(t.Context(), nil, nil, set.Compiler)),
		"no plan":                made(solvers.New(t.Context(), &solvers.Problem{}, nil, set.Compiler)),
		"trials of no problem":   tried(solvers.Fastest(t.Context(), nil, nil, scheme.Search{}, scheme.Options{})),
		"trials on no placement": tried(solvers.Fastest(t.Context(), &solvers.Problem{}, nil, scheme.Search{}, scheme.Options{})),
	} {
		if err == nil || !strings.Contains(err.Error(), "is nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
