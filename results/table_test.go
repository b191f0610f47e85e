package results_test

import (
	"encoding/csv"
	"io"
	"strings"
	"testing"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
)

func table(t *testing.T, format string, all ...results.Source) string {
	t.Helper()
	return shown(t, func(w io.Writer) error { return results.WriteTable(w, format, all...) })
}

// Tables of one record and of two machines' are golden in every format.
func TestTableGolden(t *testing.T) {
	for name, all := range map[string][]results.Source{
		"one": {resultstest.Read(t, "testdata/pingpong.json")}, "two": {resultstest.Sweep(), resultstest.Elsewhere(resultstest.Sweep())},
	} {
		for _, format := range results.Formats() {
			golden(t, "table-"+name+"."+format, table(t, format, all...))
		}
	}
}

// Rows of one table may lack what others have, and csv holds what a sample says.
func TestTableOfMixedKinds(t *testing.T) {
	run := results.Source{Name: "run.json", Record: finished()}
	pack := resultstest.Source(results.KindPack, resultstest.Took(resultstest.PackRow("wu/V|2/n=1", "pack", "", 3), "units"))
	lines, err := csv.NewReader(strings.NewReader(table(t, "csv", run, pack, resultstest.Sweep()))).ReadAll()
	if err != nil || len(lines) != 1+1+1+12 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	for name, want := range map[string][3]string{
		"file": {"run.json", "pack.json", "sweep.json"}, "kind": {"run", "pack", "sweep"}, "scheme": {"two-stream", "", ""},
		"updates (1/s)": {"2.0648881e+10", "", ""}, "time (us)": {"", "3", ""}, "share n": {"", "1", "9"}, "checked": {"false", "true", "false"},
		"note": {"", "units 1 us", ""}, "took": {"", "units", ""},
	} {
		for i, text := range want {
			if at, ok := column[name]; !ok || lines[1+i][at] != text {
				t.Errorf("%s of line %d: %q in %q", name, i+1, text, lines[1+i])
			}
		}
	}
	if text := table(t, "markdown", pack, run); !strings.Contains(text, `| V\|2 `) || !strings.Contains(text, "these are different machines") {
		t.Error(text)
	}
}

// Line breaks in what a record says leave a table's lines whole, and long texts are cut: all cells of a column are as
// wide.
func TestTableOfLineBreaks(t *testing.T) {
	all := resultstest.Source(results.KindPack, resultstest.PackRow("wu/V|2/n=1", "pack", "a\nb\tc", 3).Label("long", strings.Repeat("x", 9000)), resultstest.PackRow("wu/V|2/n=1", "pack", "d", 3))
	for _, format := range []string{"text", "markdown"} {
		if text := table(t, format, all); !strings.Contains(text, "a b c") || strings.Contains(text, "\t") || len(text) > 2000 {
			t.Errorf("as %s:\n%s", format, text)
		}
	}
}

func TestTableOfNothing(t *testing.T) {
	empty := resultstest.Source(results.KindLinks)
	empty.Interrupted = true
	for _, format := range []string{"text", "markdown"} {
		if text := table(t, format, empty); !strings.Contains(text, "interrupted") || !strings.Contains(text, "there are no rows") {
			t.Errorf("%q", text)
		}
	}
	if text := table(t, "csv", empty); text != "file,kind,checked,note\n" {
		t.Errorf("%q", text)
	}
	resultstest.WantError(t, results.WriteTable(&strings.Builder{}, "html", empty), `there is no format "html": take text, markdown, csv`)
	resultstest.WantError(t, results.WriteTable(brokenWriter{}, "text", empty), "write table", "broken pipe")
}
