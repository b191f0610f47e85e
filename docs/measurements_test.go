package docs_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// constants are what pages say in numbers with units that no record can give: limits and goals that are set in the code or
// by the project, bytes that follow from a step, data sheets, and bounds that a test holds.
var constants = map[string][]string{
	"README.md": {
		"differ by more than 3%",  // scripts/gpu-check.sh
		"time intervals of 20 ms", // internal/bench
		"| | 1 | 2 | 4 | 8 |",     // GPUs
	},
	"performance.md": {
		// How rows are timed, in internal/bench and internal/measure.
		"how many take 20 ms", "in intervals of 20 ms", "microseconds of 20 ms", "the 95% confidence interval", "is within 1% of it", "in batches of 4 ms",
		"can have more than 100%",                         // what a share may be
		"differ by more than 3%",                          // scripts/gpu-check.sh
		"take 6 us or more", "from messages of 100 us on", // solvers/scheme
		// Goals.
		"no row slower by more than 2%", "one row is above 2%", "| 90%; 3.7 times on four,", "| 80%; 98% weak on four,", "| 26 us on four,", "with the norms of every step, are 4 us for 1024^2 and 9 us for 4096^2", "is 110 us on four", "goal on four H200 is 55 us", "| 0.9 | missed |", "| 1.9 | missed |", "| 7 | missed |", "| 110 | missed |", "| 9 | met |", "| 4 | met |", "| scheme | 1 | 2 | 4 | 8 | goal of 8 |", "The goals of 98%, and 96% for", "`fused` meets 98%, and `blocked` **misses** 96%", "26 us, **missed**", "The goal is 10 us on eight", "| 55 | missed |", "| 32 | missed |", "the goal of 96% is **missed**", "| 8 |\n", "| 4.6 |\n", "| 1.02 |\n",
		"without norms | 1 |", "with norms, fast sums | 1 |", // what the other column is a multiple of
		// Bytes a point, and in all, as the examples read and write them.
		"| wave | 512^3 | 24 |", "| lbm | 192^3 each | 304 |", "| lbm | 64 x 128 x 128 in all | 304 |", "| Gray-Scott | 8192^2 | 32 |",
		"34 and 67 TFLOP/s",          // NVIDIA's data sheet
		"| | 0.1.0 | 0.2.0 | goal |", // versions
	},
	"processes.md": {
		"The goal of `mpi` is 80% of", "the goals are 90% of the rate of MPI alone and 1.3 times its", "at most 15% more, of which 1% to 5% are", // tests of namespaces hold the latter
	},
	"packing.md": {
		// TestModelOfAnH200 in halo/packing.
		"off by at most 10%", "at most 3% longer", "25% at the 95th percentile", "at least 90% of what one run",
		"within 5% of it", // what chose is asked for
	},
}

// measurement is a number with a unit in which something is measured.
var measurement = regexp.MustCompile(`(?i)\d(?:[\d.,]*\d)?(?:%| (?:us|ms|s|seconds?|microseconds?|times|[KMGT]B/s|G|[GT]FLOP/s|MHz|W|points?/s)\b)`)

// ownNumbers returns what a template says in numbers with units, or in cells that are numbers, outside of queries, code, the
// constants, and the first column of tables of claims, which is what a paper says or what the goal is.
func ownNumbers(text string, allowed []string) (found []string) {
	text = regexp.MustCompile(`(?s)\{\{.*?\}\}`).ReplaceAllString(text, "")
	text = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
	for _, phrase := range allowed {
		text = strings.ReplaceAll(text, phrase, "")
	}
	claims := false
	for line := range strings.Lines(text) {
		claims = strings.HasPrefix(line, "| the paper says |") || strings.HasPrefix(line, "| goal |") || claims && strings.HasPrefix(line, "|")
		if cells := strings.SplitN(line, "|", 3); claims && len(cells) == 3 {
			line = cells[2]
		}
		found = append(found, measurement.FindAllString(line, -1)...)
		for _, cell := range strings.Split(line, "|")[1:] {
			if regexp.MustCompile(`^ *\d[\d., ]*$`).MatchString(cell) {
				found = append(found, cell)
			}
		}
	}
	return found
}

// Every number that is a measurement comes from a query of a record.
func TestMeasurementsComeFromRecords(t *testing.T) {
	for _, page := range pagesOfRecords {
		name := filepath.Base(page)
		text := read(t, filepath.Join("templates", name))
		if found := ownNumbers(text, constants[name]); len(found) > 0 {
			t.Errorf("%s has %d numbers that no query gives: %q", name, len(found), found)
		}
		for _, phrase := range constants[name] {
			if !strings.Contains(text, phrase) {
				t.Errorf("%s does not say %q", name, phrase)
			}
		}
	}
	if found := ownNumbers("It takes 5.5 us.\n\n| a | b |\n|---|---|\n| x | 7.2 |\n", nil); len(found) != 2 {
		t.Errorf("found %q", found)
	}
}

// A digit that is changed on a page, wherever it is, or in a record, whichever it is, is found.
func TestAChangedDigitIsFound(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	for _, name := range pagesOfRecords {
		text := read(t, name)
		p := newPage()
		template := filepath.Join("templates", filepath.Base(name))
		if _, err := p.make(template); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(text, "\n") {
			if at := strings.IndexAny(line, "0123456789"); at >= 0 {
				changed := strings.Split(text, "\n")
				changed[i] = line[:at] + string(line[at]^1) + line[at+1:]
				if found, _, _ := firstDifference(strings.Join(changed, "\n"), text); found != i+1 {
					t.Errorf("%s:%d: a digit was changed, and line %d is said to differ", name, i+1, found)
				}
			}
		}
		files := slices.Sorted(maps.Keys(p.read))
		if len(files) < 5 {
			t.Errorf("%s is made from %q", name, files)
		}
		for _, file := range testdevices.Some(6, files) {
			made, err := p.with(file, otherDigits(t, file)).make(template)
			if err == nil && string(made) == text {
				t.Errorf("%s is the same with other digits in %s", name, file)
			}
		}
	}
}

// otherDigits writes a file of results with other first digits in all numbers that have been measured.
func otherDigits(t *testing.T, file string) (path string) {
	t.Helper()
	text := read(t, filepath.Join("../results", file))
	measured := regexp.MustCompile(`(?m)([^\d.])(\d)(\d*\.\d+(?:[^\d.]|$)|\d\d )`) // with decimals, as no version or size is, or in columns
	text = measured.ReplaceAllStringFunc(text, func(number string) string {
		return number[:1] + string('1'+(number[1]-'0'+4)%9) + number[2:]
	})
	path = filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// What one or two GPUs can tell is of one commit, that of the exchanges. The turns of the program before are of another.
func TestRecordsAreOfOneCommit(t *testing.T) {
	p := newPage()
	for _, name := range pagesOfRecords {
		if _, err := p.make(filepath.Join("templates", filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := p.made("h200x2/exchange.json")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for file := range p.read {
		if !strings.HasPrefix(file, "h200x2/") || filepath.Ext(file) != ".json" || strings.Contains(file, "-0.1.0-") {
			continue
		}
		if strings.Contains(file, "/trace-") {
			file = strings.TrimSuffix(file, ".json") + ".record.json" // of the run that was traced
		}
		if made, err := p.made(file); err != nil || made != wanted {
			t.Errorf("%s is of %s (%v), exchange.json of %s", file, made, err, wanted)
		}
		n++
	}
	if n < 30 {
		t.Errorf("pages are made from %d records of two GPUs", n)
	}
}

// No record names a path of the machine that it was made on, nor the machine.
func TestRecordsNameNoPath(t *testing.T) {
	path := regexp.MustCompile(`["= ,](/|~/|[A-Za-z]:\\)[\w.]+/[^"\s]*`)
	err := filepath.WalkDir("../results", func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !regexp.MustCompile(`/h[12]00x`).MatchString(filepath.ToSlash(file)) || !slices.Contains([]string{".json", ".txt", ".csv"}, filepath.Ext(file)) {
			return err
		}
		text := read(t, file)
		if found := path.FindString(text); found != "" {
			t.Errorf("%s names a path: %s", file, found)
		}
		if name := regexp.MustCompile(`"host": \{\s*"name": "([^"]*)"`).FindStringSubmatch(text); name != nil && name[1] != "vm" {
			t.Errorf("%s names its host", file)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
