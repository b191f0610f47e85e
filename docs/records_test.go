package docs_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/trace"
)

// pagesOfRecords are the pages whose numbers are measurements. Each is made from a template beside it,
// in which every such number is a query of a record.
var pagesOfRecords = []string{"processes.md", "performance.md", "packing.md", "../README.md"}

// TestPagesSayWhatRecordsSay makes the pages from their templates and the records, and compares them
// with those that are there. UPDATE=1 writes them.
func TestPagesSayWhatRecordsSay(t *testing.T) {
	for _, page := range append(slices.Clone(pagesOfRecords), "ranks.md", "many-hosts.md") { // which also has numbers that are no measurements
		made, err := newPage().make(filepath.Join("templates", filepath.Base(page)))
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(page, made, 0o644); err != nil {
				t.Error(err)
			}
		}
		if i, there, wanted := firstDifference(read(t, page), string(made)); i > 0 {
			t.Errorf("%s:%d: the page has\n%s\nits template and the records give\n%s\nUPDATE=1 go test ./docs -run Records writes it", page, i, there, wanted)
		}
	}
}

// firstDifference returns the first line, from 1, in which texts differ, 0 if none.
func firstDifference(a, b string) (line int, inA, inB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		inA, inB = "", ""
		if i < len(as) {
			inA = as[i]
		}
		if i < len(bs) {
			inB = bs[i]
		}
		if inA != inB || i >= len(as) || i >= len(bs) {
			return i + 1, inA, inB
		}
	}
	return 0, "", ""
}

// A page is made from a template. Queries name a file below results.
type page struct {
	records  map[string]*results.Record
	programs map[string]string // what made gives
	read     map[string]bool   // all files that were asked
	replaced map[string]string // where to read a file instead
}

func newPage() *page {
	return &page{records: map[string]*results.Record{}, programs: map[string]string{}, read: map[string]bool{}}
}

// with is a page that reads one file elsewhere, and has all records that this one has read.
func (p *page) with(file, elsewhere string) *page {
	other := &page{records: maps.Clone(p.records), programs: p.programs, read: map[string]bool{}, replaced: map[string]string{file: elsewhere}}
	delete(other.records, file)
	return other
}

// path returns where a file of results is.
func (p *page) path(file string) string {
	p.read[file] = true
	if elsewhere, ok := p.replaced[file]; ok {
		return elsewhere
	}
	return filepath.Join("../results", file)
}

// make executes a template with the queries that [page] has:
//
//	value FILE METRIC WHERE...    the median of the one row that has these labels, "devices=4 path=peer";
//	                              spaces within a label are hyphens, and "norms=" is a row without that label;
//	                              "bytes>=4194304" is one of at least that
//	lowest, highest, middle       of the medians of all rows that have them
//	mean FILES METRIC WHERE...    the mean of value over files whose names match a pattern
//	rows FILE METRIC WHERE...     how many rows have these labels
//	reach BOUND FILE METRIC WHERE...  in how many of them the metric is at least that
//	leastRatio, mostRatio FILES FILES METRIC WHERE...  over all rows, of what mean gives for the second to the first
//	leastAcross, mostAcross FILE METRIC LABEL A B WHERE...  over all rows, of B's metric to A's, where nothing but that label differs
//	checked FILE                  how many rows were compared with what they should be
//	groups FILE DIRECTION         how many layouts a bench of datatypes has, and
//	chose BOUND FILE DIRECTION    for how many of them auto took at most so many times the least time of all engines
//	hidden FILE                   the share of the communication in a trace behind which devices swept
//	made FILE                     which halox made a record, "0.2.0 at 95df59a"
//	logged FILE PATTERN           the number that the group of a pattern matches in a text, the mean of several
//	div, mul, sub, add            of two numbers
//	percent, fix N, sig N         a number as text: of 1, with N decimals, with N digits
func (p *page) make(file string) ([]byte, error) {
	t, err := template.New(filepath.Base(file)).Option("missingkey=error").Funcs(template.FuncMap{
		"value": p.value, "lowest": p.over(slices.Min[[]float64]), "highest": p.over(slices.Max[[]float64]),
		"middle": p.over(middle), "mean": p.mean, "rows": p.count, "reach": p.reach, "checked": p.checked,
		"leastRatio": p.ratio(slices.Min[[]float64]), "mostRatio": p.ratio(slices.Max[[]float64]),
		"leastAcross": p.across(slices.Min[[]float64]), "mostAcross": p.across(slices.Max[[]float64]),
		"chose": p.chose, "groups": p.groups, "made": p.made, "logged": p.logged, "hidden": p.hidden,
		"list": func(all ...any) []any { return all },
		"div":  func(a, b float64) float64 { return a / b }, "mul": func(a, b float64) float64 { return a * b },
		"sub": func(a, b float64) float64 { return a - b }, "add": func(a, b float64) float64 { return a + b },
		"atMost":  func(goal, v float64) string { return verdict(goal, v <= goal) },
		"atLeast": func(goal, v float64) string { return verdict(goal, v >= goal) },
		"met":     met, "fix": fix, "sig": significant,
		"millions": func(v float64) string { return fix(0, v/1e6) },
		"percent":  func(v float64) string { return fix(0, 100*v) + "%" },
	}).ParseFiles(file)
	if err != nil {
		return nil, err
	}
	var made bytes.Buffer
	err = t.Execute(&made, nil)
	return made.Bytes(), err
}

// verdict is a goal, and whether it is met.
func verdict(goal float64, is bool) string {
	return strconv.FormatFloat(goal, 'f', -1, 64) + ", " + met(is)
}

func met(is bool) string {
	if is {
		return "met"
	}
	return "missed"
}

func fix(decimals int, v float64) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

// significant rounds to so many digits, without an exponent.
func significant(digits int, v float64) (string, error) {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil || rounded == 0 {
		return "0", err
	}
	return fix(max(0, digits-1-int(math.Floor(math.Log10(math.Abs(rounded))))), rounded), nil
}

func (p *page) record(file string) (r *results.Record, err error) {
	if p.records[file] == nil {
		p.records[file], err = results.Read(p.path(file))
	}
	return p.records[file], err
}

// made says which halox made a record or a log, in its words.
func (p *page) made(file string) (string, error) {
	if filepath.Ext(file) == ".txt" {
		text, err := os.ReadFile(p.path(file))
		if err != nil {
			return "", err
		}
		first := regexp.MustCompile(`^# halox (\S+) \((\w+)\)`).FindSubmatch(text)
		if first == nil {
			return "", fmt.Errorf("%s: its first line does not say which halox made it", file)
		}
		return fmt.Sprintf("%s at %s", first[1], first[2]), nil
	}
	if p.programs[file] == "" {
		r, err := results.Read(filepath.Join("../results", file))
		if err != nil {
			return "", err
		}
		p.programs[file] = r.Halox.Version + " at " + r.Halox.ShortCommit()
	}
	return p.programs[file], nil
}

// medians returns the medians of a metric in all rows of a record that have the labels.
func (p *page) medians(file, metric string, where []string) (found []float64, err error) {
	r, err := p.record(file)
	if err != nil {
		return nil, err
	}
	labels := strings.Fields(strings.Join(where, " "))
	for _, row := range r.Rows {
		sample, ok := row.Get(results.Metric(metric))
		if ok && !slices.ContainsFunc(labels, func(label string) bool { return !has(row, label) }) {
			found = append(found, sample.Median)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no row has %v with a %s", file, labels, metric)
	}
	return found, nil
}

// has reports whether a row has a label, as a query gives it.
func has(row results.Row, label string) bool {
	if name, least, ok := strings.Cut(label, ">="); ok {
		bound, err := strconv.ParseFloat(least, 64)
		v, ok := row.Float(name)
		return err == nil && ok && v >= bound
	}
	name, value, ok := strings.Cut(label, "=")
	return ok && strings.ReplaceAll(row.Text(name), " ", "-") == value
}

func (p *page) value(file, metric string, where ...string) (float64, error) {
	all, err := p.medians(file, metric, where)
	if err == nil && len(all) > 1 {
		err = fmt.Errorf("%s: %d rows have %v: say which", file, len(all), where)
	}
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

func (p *page) over(f func([]float64) float64) func(string, string, ...string) (float64, error) {
	return func(file, metric string, where ...string) (float64, error) {
		all, err := p.medians(file, metric, where)
		if err != nil {
			return 0, err
		}
		return f(all), nil
	}
}

// middle is the median.
func middle(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func (p *page) count(file, metric string, where ...string) (int, error) {
	all, err := p.medians(file, metric, where)
	return len(all), err
}

func (p *page) reach(bound float64, file, metric string, where ...string) (int, error) {
	all, err := p.medians(file, metric, where)
	return countIf(all, func(v float64) bool { return v >= bound }), err
}

func countIf[T any](all []T, is func(T) bool) (n int) {
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return n
}

// ratio joins the ratios of the rows that the records of two patterns have in common.
func (p *page) ratio(join func([]float64) float64) func(string, string, string, ...string) (float64, error) {
	return func(from, to, metric string, where ...string) (float64, error) {
		first, err := filepath.Glob(filepath.Join("../results", from))
		if err != nil || len(first) == 0 {
			return 0, fmt.Errorf("no record %s: %w", from, err)
		}
		r, err := p.record(strings.TrimPrefix(filepath.ToSlash(first[0]), "../results/"))
		if err != nil {
			return 0, err
		}
		var all []float64
		for _, row := range r.Rows {
			labels := strings.Fields(strings.Join(where, " "))
			if slices.ContainsFunc(labels, func(label string) bool { return !has(row, label) }) {
				continue
			}
			for _, l := range row.Labels {
				labels = append(labels, l.Name+"="+strings.ReplaceAll(l.Text(), " ", "-"))
			}
			for _, name := range []string{"norms", "sums"} {
				if row.Text(name) == "" {
					labels = append(labels, name+"=")
				}
			}
			a, err := p.mean(from, metric, labels...)
			if err != nil {
				return 0, err
			}
			b, err := p.mean(to, metric, labels...)
			if err != nil {
				return 0, err
			}
			all = append(all, b/a)
		}
		return join(all), nil
	}
}

// across joins the ratios of rows that differ in one label only.
func (p *page) across(join func([]float64) float64) func(file, metric, label, a, b string, where ...string) (float64, error) {
	return func(file, metric, label, a, b string, where ...string) (float64, error) {
		r, err := p.record(file)
		if err != nil {
			return 0, err
		}
		var all []float64
		for _, row := range r.Rows {
			var labels []string
			for _, l := range row.Labels {
				if l.Name != label {
					labels = append(labels, l.Name+"="+strings.ReplaceAll(l.Text(), " ", "-"))
				}
			}
			fits := row.Text(label) == a && !slices.ContainsFunc(strings.Fields(strings.Join(where, " ")), func(w string) bool { return !has(row, w) })
			if !fits {
				continue
			}
			if row.Text("variant") == "" {
				labels = append(labels, "variant=")
			}
			other, err := p.value(file, metric, append(labels, label+"="+b)...)
			if err != nil {
				return 0, err
			}
			all = append(all, other/row.Median(results.Metric(metric)))
		}
		if len(all) == 0 {
			return 0, fmt.Errorf("%s: no row with %s=%s has %v", file, label, a, where)
		}
		return join(all), nil
	}
}

// excess returns for each layout of a bench of datatypes how many times the least time of all engines auto took.
func (p *page) excess(file, direction string) (all []float64, err error) {
	r, err := p.record(file)
	if err != nil {
		return nil, err
	}
	for _, g := range r.Groups() {
		auto, ok := g.Of("auto")
		if !ok || auto.Text("direction") != direction {
			continue
		}
		least := math.Inf(1)
		for _, row := range g.Rows {
			if row.Contender() != "auto" {
				least = min(least, row.Median(results.Time))
			}
		}
		all = append(all, auto.Median(results.Time)/least)
	}
	return all, nil
}

func (p *page) checked(file string) (int, error) {
	r, err := p.record(file)
	if err != nil {
		return 0, err
	}
	return countIf(r.Rows, func(row results.Row) bool { return row.Checked }), nil
}

func (p *page) groups(file, direction string) (int, error) {
	all, err := p.excess(file, direction)
	return len(all), err
}

func (p *page) chose(bound float64, file, direction string) (int, error) {
	all, err := p.excess(file, direction)
	return countIf(all, func(v float64) bool { return v <= bound }), err
}

// mean is the mean of value over the files whose names match a pattern: turns of one measurement.
func (p *page) mean(files, metric string, where ...string) (sum float64, err error) {
	all, err := filepath.Glob(filepath.Join("../results", files))
	if err != nil || len(all) == 0 {
		return 0, fmt.Errorf("no record %s: %w", files, err)
	}
	for _, file := range all {
		v, err := p.value(strings.TrimPrefix(filepath.ToSlash(file), "../results/"), metric, where...)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum / float64(len(all)), nil
}

// logged returns the number that the group of a pattern matches in a text, the mean where there are several.
func (p *page) logged(file, pattern string) (sum float64, err error) {
	text, err := os.ReadFile(p.path(file))
	if err != nil {
		return 0, err
	}
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return 0, err
	}
	all := re.FindAllStringSubmatch(string(text), -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("%s: nothing matches %q", file, pattern)
	}
	for _, m := range all {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += v
	}
	return sum / float64(len(all)), nil
}

func (p *page) hidden(file string) (float64, error) {
	t, err := trace.Read(p.path(file))
	if err != nil {
		return 0, err
	}
	behind, all := t.Hidden()
	return behind.Seconds() / all.Seconds(), nil
}
