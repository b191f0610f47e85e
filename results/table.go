package results

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/halox/halox/results/internal/wording"
)

// align writes cells in columns: the first aligned left, all others right.
func align(w *strings.Builder, lines [][]string) {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		for i, cell := range line {
			if i == 0 {
				fmt.Fprintf(w, "%-*s", widths[i], cell)
			} else {
				fmt.Fprintf(w, "  %*s", widths[i], cell)
			}
		}
		fmt.Fprintln(w)
	}
}

// Formats are the formats of [WriteTable].
var formats = []string{"text", "markdown", "csv"}

// Formats returns the formats of WriteTable.
func Formats() []string { return slices.Clone(formats) }

// WriteTable writes the rows of some records as one table, in their order: one column per label that varies,
// per other distinction, and per metric. In text and markdown, common properties of all rows are above the
// table, metrics are medians in display units, and a median whose 95% confidence interval exceeds 1% is
// followed by its width. In csv each label has a column, and each metric one per property of its sample, in
// the unit of the record.
func WriteTable(w io.Writer, format string, all ...Source) error {
	t := newTable(all)
	var text strings.Builder
	var err error
	switch format {
	case "text", "markdown":
		t.write(&text, format == "markdown")
	case "csv":
		err = t.csv(&text)
	default:
		err = fmt.Errorf("the format must be one of %s, got %q", strings.Join(formats, ", "), format)
	}
	if err == nil {
		_, err = io.WriteString(w, text.String())
	}
	if err != nil {
		return fmt.Errorf("results: write table: %w", err)
	}
	return nil
}

// table is rows of records with their columns.
type table struct {
	sources []Source
	rows    []tableRow
	labels  []string // in the order of the rows
	metrics []metricColumn
}

// tableRow is a row and its source.
type tableRow struct {
	Row
	source int
}

// metricColumn is the numbers of one metric in one unit.
type metricColumn struct {
	metric Metric
	unit   string
}

func newTable(all []Source) *table {
	t := &table{sources: all}
	for i, s := range all {
		for _, row := range s.Rows {
			t.rows = append(t.rows, tableRow{row, i})
			previous := ""
			for _, l := range row.Labels {
				t.labels = insertAfter(t.labels, previous, l.Name)
				previous = l.Name
			}
			for _, v := range row.Values {
				if c := (metricColumn{v.Metric, v.Unit}); !slices.Contains(t.metrics, c) {
					t.metrics = append(t.metrics, c)
				}
			}
		}
	}
	return t
}

// insertAfter adds a missing name after another.
func insertAfter(names []string, previous, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return slices.Insert(names, slices.Index(names, previous)+1, name)
}

// label returns the text of a row's label, excluding parameters of other labels.
func (r tableRow) label(name string) string {
	for _, l := range r.Labels {
		if l.Name == name {
			return l.Text()
		}
	}
	return ""
}

// value returns the value of a row in a column.
func (r tableRow) value(c metricColumn) (Sample, bool) {
	s, ok := r.Get(c.metric)
	return s, ok && r.Unit(c.metric) == c.unit
}

// split returns the labels that vary, and a text about the others. For a single row all are columns.
func (t *table) split() (columns []string, common string) {
	var said []string
	for _, name := range t.labels {
		var values []string
		for _, row := range t.rows {
			values = append(values, row.label(name))
		}
		if len(values) > 1 && wording.Uniform(values) {
			said = append(said, wording.Short(wording.Spaced(name)+" "+values[0]))
		} else {
			columns = append(columns, name)
		}
	}
	if len(t.rows) > 0 && !slices.ContainsFunc(t.rows, func(r tableRow) bool { return !r.Checked }) {
		said = append(said, "all results checked")
	}
	return columns, strings.Join(said, ", ")
}

// head describes the records: kind, machine, time, and outcome; those with the same description share a line.
func (t *table) head() (lines []string) {
	var abouts []string
	names := map[string][]string{}
	for _, s := range t.sources {
		about := s.about()
		if len(t.sources) < 4 && !s.Started.IsZero() {
			about += ", " + s.Started.Format("2006-01-02 15:04")
		}
		if names[about] == nil {
			abouts = append(abouts, about)
		}
		names[about] = append(names[about], s.Name)
	}
	for _, about := range abouts {
		switch all := names[about]; {
		case len(all) > 3:
			about = fmt.Sprintf("%d records: %s", len(all), about)
		case all[0] != "":
			about = strings.Join(all, ", ") + ": " + about
		}
		lines = append(lines, oneLine(about))
	}
	if names := MachineNames(t.sources); len(names) > 1 && !wording.Uniform(names) {
		lines = append(lines, "these are different machines")
	}
	return lines
}

// about describes a record: its kind, machine and halox, and the error that ended it early.
func (s Source) about() string {
	return wording.Join(", ", string(s.Kind), s.machine(), s.Halox.String(), s.State())
}

// cells returns the table for display, with the names of the columns first, and the number of columns with
// words.
func (t *table) cells() (lines [][]string, common string) {
	labels, common := t.split()
	head := slices.Clone(labels)
	if len(t.sources) > 1 {
		head = slices.Insert(head, 0, "file")
	}
	for i := range head {
		head[i] = wording.Spaced(head[i])
	}
	for _, c := range t.metrics {
		unit, _ := c.metric.Shown(c.unit)
		head = append(head, wording.Spaced(string(c.metric))+wording.Unit(unit))
	}
	lines = [][]string{head}
	for _, row := range t.rows {
		var line []string
		if len(t.sources) > 1 {
			line = []string{t.sources[row.source].Name}
		}
		for _, name := range labels {
			line = append(line, wording.OrDash(row.label(name)))
		}
		for _, c := range t.metrics {
			line = append(line, row.cell(c))
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for i := range line {
			line[i] = wording.Short(oneLine(line[i]))
		}
	}
	return lines, oneLine(common)
}

// oneLine returns a text of a record with spaces for line breaks and other control characters, which would
// break a table.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// cell formats a median for display.
func (r tableRow) cell(c metricColumn) string {
	s, ok := r.value(c)
	if !ok {
		return "-"
	}
	_, factor := c.metric.Shown(c.unit)
	text := wording.Digits(s.Median * factor)
	if lo, hi, ok := s.Interval(); ok && !s.Converged(0.01) && s.Median != 0 {
		text += fmt.Sprintf(" ±%.0f%%", 100*max(s.Median-lo, hi-s.Median)/math.Abs(s.Median))
	}
	return text
}

// write writes the table for display, with bars around cells in markdown.
func (t *table) write(w *strings.Builder, markdown bool) {
	lines, common := t.cells()
	for _, line := range append(t.head(), common) {
		if line != "" {
			fmt.Fprintln(w, line)
		}
		if line != "" && markdown {
			fmt.Fprintln(w)
		}
	}
	switch {
	case len(t.rows) == 0:
		fmt.Fprintln(w, "no rows")
	case markdown:
		t.markdown(w, lines)
	default:
		fmt.Fprintln(w)
		align(w, lines)
	}
}

func (t *table) markdown(w *strings.Builder, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i := range line {
			line[i] = strings.ReplaceAll(line[i], "|", `\|`)
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]), 3)
		}
	}
	rule := make([]string, len(widths))
	for i, n := range widths {
		rule[i] = strings.Repeat("-", n)
		if i >= len(widths)-len(t.metrics) {
			rule[i] = strings.Repeat("-", n-1) + ":"
		}
	}
	for _, line := range slices.Insert(lines, 1, rule) {
		for i, cell := range line {
			fmt.Fprintf(w, "| %-*s ", widths[i], cell)
		}
		fmt.Fprintln(w, "|")
	}
}

// csv writes all data of the rows, with a column for each part of a sample.
func (t *table) csv(w io.Writer) error {
	head := append([]string{"file", "kind"}, t.labels...)
	for _, c := range t.metrics {
		name := string(c.metric)
		head = append(head, name+wording.Unit(c.unit), name+" q1", name+" q3", name+" min", name+" max", name+" n")
	}
	out := csv.NewWriter(w)
	err := out.Write(append(head, "checked", "note"))
	for _, row := range t.rows {
		if err == nil {
			err = out.Write(t.csvLine(row))
		}
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

func (t *table) csvLine(row tableRow) []string {
	source := t.sources[row.source]
	line := []string{source.Name, string(source.Kind)}
	for _, name := range t.labels {
		line = append(line, row.label(name))
	}
	for _, c := range t.metrics {
		s, ok := row.value(c)
		if !ok {
			line = append(line, "", "", "", "", "", "")
			continue
		}
		for _, v := range []float64{s.Median, s.Q1, s.Q3, s.Min, s.Max} {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
		line = append(line, strconv.Itoa(s.N))
	}
	return append(line, strconv.FormatBool(row.Checked), row.Note)
}
