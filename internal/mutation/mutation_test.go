// Package mutation shows that the conformance suite of halo finds mistakes. It seeds
// faults, one at a time, into copies of the sources, which `go test -overlay` puts in
// their place, and wants the suite to fail. No source knows of it.
package mutation

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// suite is the arguments of `go` for the conformance tests on CPU devices. They
// draw the same cases each time and do not look for smaller ones that fail.
var suite = []string{"test", "-count=1", "-vet=off", "-ldflags=-s -w", "-timeout=90s",
	"-run", "^(TestExchangeAgreesWithGeometry|TestExchangeCases)$/^backend=host$", "./halo",
	"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s"}

// root is the root of the module.
const root = "../.."

// sources are changed sources, by file.
type sources map[string]string

// mutate returns the changed file. It is an error unless what the fault changes
// stands there once: then the code has moved on and the table must follow.
func (f fault) mutate() (sources, error) {
	source, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(source), f.old); n != 1 {
		return nil, fmt.Errorf("%s holds %q %d times, not once: adapt the table of faults", f.file, f.old, n)
	}
	return sources{f.file: strings.Replace(string(source), f.old, f.new, 1)}, nil
}

// overlay writes the sources and the overlay file for `go` into a folder.
func (s sources) overlay(folder string) (name string, err error) {
	replace := map[string]string{}
	for file, source := range s {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		changed := filepath.Join(folder, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(changed, []byte(source), 0o600); err != nil {
			return "", err
		}
		replace[original] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name = filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// run runs the suite over the sources and returns what it printed, and whether it
// passed.
func (s sources) run(t *testing.T) (output string, passed bool) {
	t.Helper()
	overlay := test.Must(s.overlay(t.TempDir()))(t)
	command := exec.CommandContext(t.Context(), "go", slices.Insert(slices.Clone(suite), 1, "-overlay="+overlay)...)
	command.Dir = root
	printed, err := command.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(printed), err == nil
}

// outcome is what the suite made of a fault.
type outcome struct {
	fault string
	took  time.Duration
	draw  string // the first random case that failed, counted from 0
	cases []string
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: `)
	failedDraw = regexp.MustCompile(`\[rapid\] .*after (\d+) tests`)
	failedCase = regexp.MustCompile(`--- FAIL: TestExchangeCases/backend=host/(\S+)`)
)

// read takes from what the suite printed what failed.
func (o *outcome) read(output string) {
	if m := failedDraw.FindStringSubmatch(output); m != nil {
		o.draw = m[1]
	}
	for _, m := range failedCase.FindAllStringSubmatch(output, -1) {
		o.cases = append(o.cases, m[1])
	}
	slices.Sort(o.cases)
}

// TestEveryFaultHasItsPlace finds quickly that the sources have changed, which TestFaultsAreFound finds after minutes.
func TestEveryFaultHasItsPlace(t *testing.T) {
	for _, f := range faults {
		if _, err := f.mutate(); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

// TestFaultsAreFound wants every fault to fail a test of the suite, or some of them unless tests are long; one that does
// not compile, or never ends, shows nothing.
func TestFaultsAreFound(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	if testing.Short() {
		t.Skip("SKIPPED: builds and runs the tests of halo once a fault")
	}
	faults := testdevices.Some(4, faults)
	outcomes := make([]outcome, len(faults))
	t.Run("fault", func(t *testing.T) { // ends when all that is parallel in it has
		for i, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				o := &outcomes[i]
				o.fault = f.name
				mutant := test.Must(f.mutate())(t)
				start := time.Now()
				output, passed := mutant.run(t)
				o.took = time.Since(start)
				o.read(output)
				switch {
				case passed:
					t.Errorf("no test of the suite fails with %q for %q in %s", f.new, f.old, f.file)
				case strings.Contains(output, "[build failed]"):
					t.Errorf("it does not compile:\n%s", output)
				case !failedTest.MatchString(output):
					t.Errorf("it ends without a test that failed:\n%s", output)
				}
			})
		}
	})
	t.Logf("what found each of %d faults:\n%s", len(outcomes), table(outcomes))
}

// table lists the faults with the draws of the random test and the cases that found them.
func table(outcomes []outcome) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tseconds\tdraw\tcases\tthe first of them")
	for _, o := range outcomes {
		first := ""
		if len(o.cases) > 0 {
			first = o.cases[0]
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%d\t%s\n", o.fault, o.took.Seconds(), o.draw, len(o.cases), first)
	}
	w.Flush()
	return text.String()
}

// The suite passes with an overlay that changes nothing, so that the faults make it fail.
func TestTheSuitePassesWithoutFaults(t *testing.T) {
	testdevices.InTurn(t, 3, 4)
	if testing.Short() {
		t.Skip("SKIPPED: builds and runs the tests of halo")
	}
	same := sources{}
	for _, f := range faults {
		source := test.Must(os.ReadFile(filepath.Join(root, f.file)))(t)
		same[f.file] = string(source)
	}
	if output, passed := same.run(t); !passed {
		t.Errorf("it fails:\n%s", output)
	}
}
