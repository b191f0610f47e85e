package docs_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/trace"
)

// pagesOfRecords are the pages whose numbers are measurements. Each is made from a template in which every such number
// is a query of a record: templates/F.tmpl of the page F. The README has its template here too.
func pagesOfRecords(t *testing.T) []string {
	t.Helper()
	found := under(t, "templates", ".tmpl")
	for i, file := range found {
		found[i] = strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".tmpl")
	}
	if len(found) < 6 {
		t.Fatalf("%d templates", len(found))
	}
	return found
}

func templateOf(page string) string { return filepath.Join("templates", page+".tmpl") }

// TestPagesSayWhatRecordsSay makes the pages from their templates and the records, and compares them with those that are
// there. UPDATE=1 writes them.
func TestPagesSayWhatRecordsSay(t *testing.T) {
	for _, file := range pagesOfRecords(t) {
		text, err := (&page{}).make(templateOf(file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if os.Getenv("UPDATE") != "" {
			test.Report(t, os.WriteFile(strings.Replace(file, "README", "../README", 1), text, 0o644))
		}
		is, want := strings.Split(read(t, strings.Replace(file, "README", "../README", 1)), "\n"), strings.Split(string(text), "\n")
		for i := range max(len(is), len(want)) {
			if i >= len(is) || i >= len(want) || is[i] != want[i] {
				t.Errorf("%s:%d differs from its template and the records, which give\n%s\n"+
					"UPDATE=1 go test ./docs -run Records writes it", file, i+1, want[min(i, len(want)-1)])
				break
			}
		}
	}
}

// measurement is a number with a unit in which something is measured, or a table cell that is a number.
var measurement = regexp.MustCompile(`(?i)\d(?:[\d.,]*\d)?(?:%| (?:us|ms|s|seconds?|microseconds?|times|[KMGT]B/s|G|` +
	`[GT]FLOP/s|MHz|W|points?/s)\b)|\| *\d[\d., ]*\|`)

// typed returns the measurements in a template outside of queries, code, the heads of tables, and the first column of
// tables of claims, which is what a paper says or what the goal is.
func typed(text string) (found []string) {
	text = regexp.MustCompile("(?ms)\\{\\{.*?\\}\\}|^```.*?^```$").ReplaceAllString(text, "")
	lines, claims := strings.Split(text, "\n"), false
	for i, line := range lines {
		claims = strings.HasPrefix(line, "| the paper says |") || strings.HasPrefix(line, "| goal |") ||
			claims && strings.HasPrefix(line, "|")
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--") {
			continue
		}
		if cells := strings.SplitN(line, "|", 3); claims {
			line = "|" + cells[2]
		}
		found = append(found, measurement.FindAllString(line, -1)...)
	}
	return found
}

// Every number that is a measurement comes from a query of a record, or is marked as given.
func TestMeasurementsComeFromRecords(t *testing.T) {
	for _, file := range pagesOfRecords(t) {
		if slices.Contains([]string{"results/ranks.md", "results/forecast.md"}, file) {
			continue // with other numbers too
		}
		if found := typed(read(t, templateOf(file))); len(found) > 0 {
			t.Errorf("the template of %s has %d numbers that no query gives: %q", file, len(found), found)
		}
	}
	if found := typed("It takes 5.5 us.\n\n| a | b |\n|---|---|\n| x | 7.2 |\n"); len(found) != 2 {
		t.Errorf("found %q", found)
	}
}

// What two H200 can tell is of one commit, that of the exchanges. The turns of the version before are of another.
func TestRecordsAreOfOneCommit(t *testing.T) {
	var p page
	for _, file := range pagesOfRecords(t) {
		if file == "results/ranks.md" {
			continue
		}
		test.Must(p.make(templateOf(file)))(t)
	}
	want, err := p.made("h200x2/exchange.json")
	n := 0
	for file, r := range p.records {
		if strings.HasPrefix(file, "h200x2/") && !strings.Contains(file, "-0.1.0-") {
			if made := madeBy(r); err != nil || made != want {
				t.Errorf("%s is of %s, exchange.json of %s (%v)", file, made, want, err)
			}
			n++
		}
	}
	if n < 30 {
		t.Errorf("pages are made from %d records of two GPUs", n)
	}
}

// No record names a path of the machine that it was made on, nor the machine.
func TestRecordsNameNoPath(t *testing.T) {
	var files []string
	for _, pattern := range []string{"h[12]00x*/*.[jtc]*", "h[12]00x*/*/*.[jtc]*"} { // .json, .txt, .csv
		more, _ := glob(pattern)
		files = append(files, more...)
	}
	if len(files) < 100 {
		t.Fatalf("%d files", len(files))
	}
	path := regexp.MustCompile(`["= ,](/|~/|[A-Za-z]:\\)[\w.]+/[^"\s]*`)
	host := regexp.MustCompile(`"host": \{\s*"name": "([^"]*)"`)
	for _, file := range files {
		text := read(t, filepath.Join("../results", file))
		if found := path.FindString(text); found != "" {
			t.Errorf("%s names a path: %s", file, found)
		}
		if name := host.FindStringSubmatch(text); name != nil && name[1] != "vm" {
			t.Errorf("%s names its host", file)
		}
	}
}

// A page is made from a template. Queries name a file below results.
type page struct {
	records map[string]*results.Record // that were read
}

// make executes a template with these queries. WHERE is labels that rows must have, "devices=4 path=peer": spaces within
// a label are hyphens, "norms=" is a row without that label, and "bytes>=4194304" is one of at least that.
//
//	value FILE METRIC WHERE...        the median of the one row that has the labels
//	lowest, highest, middle           of the medians of all rows that have them
//	label FILE NAME                   a label of the only row
//	measured FILE NAME                a measure of a run, at its end
//	rows, reach BOUND                 how many rows have them, and in how many the metric is at least that
//	mean FILES METRIC WHERE...        the mean of value over files whose names match a pattern
//	leastRatio, mostRatio FILES FILES METRIC WHERE...
//	                                  over all rows, of what mean gives for the second to the first
//	leastAcross, mostAcross FILE METRIC LABEL A B WHERE...
//	                                  over all rows, of B's metric to A's, where nothing but that label differs
//	checked FILE                      how many rows were compared with what they should be
//	groups FILE DIRECTION             how many layouts a bench of datatypes has, and
//	chose BOUND FILE DIRECTION        for how many of them auto took at most so many times the least time
//	hidden FILE                       the share of the communication in a trace behind which devices swept
//	made FILE                         which halox made a record, "0.2.0 at 95df59a"
//	logged FILE PATTERN               the number that the group of a pattern matches in a text, the mean of several
//	div, mul, sub, add                of two numbers
//	percent, fix N, sig N             a number as text: of 1, with N decimals, with N digits
//	given TEXT                        a number that no record gives: a limit or a goal of the code, a data sheet
func (p *page) make(file string) ([]byte, error) {
	verdict := func(goal float64, is bool) string { return strconv.FormatFloat(goal, 'f', -1, 64) + ", " + met(is) }
	t, err := template.New(filepath.Base(file)).Option("missingkey=error").Funcs(template.FuncMap{
		"value": p.over(one), "lowest": p.over(single(slices.Min[[]float64])), "mean": p.mean,
		"highest": p.over(single(slices.Max[[]float64])), "middle": p.over(single(middle)),
		"measured": func(file, name string) (float64, error) {
			r, err := p.record(file)
			if err != nil || r.Run == nil || r.Run.Measures[name] == nil {
				return 0, fmt.Errorf("%s: must be a run that measures %s: %w", file, name, err)
			}
			return *r.Run.Measures[name], nil
		},
		"label": func(file, name string) (string, error) {
			r, err := p.record(file)
			if err != nil || len(r.Rows) != 1 {
				return "", fmt.Errorf("%s: must have one row: %w", file, err)
			}
			return r.Rows[0].Text(name), nil
		},
		"rows": func(file, metric string, where ...string) (int, error) {
			return p.reach(math.Inf(-1), file, metric, where...)
		},
		"reach": p.reach, "leastRatio": p.ratio(slices.Min[[]float64]), "mostRatio": p.ratio(slices.Max[[]float64]),
		"leastAcross": p.across(slices.Min[[]float64]), "mostAcross": p.across(slices.Max[[]float64]),
		"checked": p.checked, "made": p.made, "logged": logged, "hidden": hidden, "chose": p.chose,
		"groups": func(file, direction string) (int, error) { return p.chose(math.Inf(1), file, direction) },
		"list":   func(all ...any) []any { return all }, "given": func(text string) string { return text },
		"div": func(a, b float64) float64 { return a / b }, "mul": func(a, b float64) float64 { return a * b },
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
	var text bytes.Buffer
	err = t.Execute(&text, nil)
	return text.Bytes(), err
}

func met(is bool) string { return map[bool]string{true: "met", false: "missed"}[is] }

func fix(decimals int, v float64) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

// significant rounds to so many digits, without an exponent.
func significant(digits int, v float64) (string, error) {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil || rounded == 0 {
		return "0", err
	}
	return fix(max(0, digits-1-int(math.Floor(math.Log10(math.Abs(rounded))))), rounded), nil
}

func (p *page) record(file string) (*results.Record, error) {
	if r := p.records[file]; r != nil {
		return r, nil
	}
	r, err := results.Read(filepath.Join("../results", file))
	if err != nil {
		return nil, err
	}
	if p.records == nil {
		p.records = map[string]*results.Record{}
	}
	p.records[file] = r
	return r, nil
}

// The chart of the README has one record and one exchange interval per curve, and of each scheme the fastest path and order.
// UPDATE=1 writes it.
func TestChartDrawsWhatRecordsSay(t *testing.T) {
	const file = "images/at-a-glance.svg"
	var p page
	devices := []float64{1, 2, 4}
	curve := func(record string, metric results.Metric, scale float64, where ...string) plot.Curve {
		c := plot.Curve{Name: strings.TrimPrefix(where[0], "scheme=")}
		for _, n := range devices {
			var best results.Sample
			for _, row := range test.Must(p.record("h100x4/performance/" + record + ".json"))(t).Rows {
				v, ok := row.Get(metric)
				if ok && has(row, append(where, fmt.Sprint("devices=", n))) && (best.N == 0 || v.Median < best.Median == metric.LowerIsBetter()) {
					best = v.Scale(scale)
				}
			}
			lo, hi, _ := best.Interval()
			c.X, c.Y, c.Lo, c.Hi = append(c.X, n), append(c.Y, best.Median), append(c.Lo, lo), append(c.Hi, hi)
		}
		return c
	}
	ideal := func(one float64, of func(one, n float64) float64) plot.Curve {
		c := plot.Curve{Name: "ideal", Bound: true}
		for n := 1.; n <= 4; n += 0.125 {
			c.X, c.Y = append(c.X, n), append(c.Y, of(one, n))
		}
		return c
	}
	chart := func(unit string, curves ...plot.Curve) plot.Curves {
		return plot.Curves{XLabel: "H100 GPUs", YLabel: unit, LinearX: true, LinearY: true, Curves: curves}
	}
	blocked := curve("scaling-blocked", results.Updates, 1e-9, "scheme=blocked", "points=512", "mode=strong", "steps_per_exchange=4")
	long := plot.Curve{Name: "blocked, for 5 s", Color: "blocked", X: devices}
	for _, n := range devices {
		us := test.Must(logged("h100x4/performance/seconds.txt", fmt.Sprintf(`^7-points %g GPUs .*exchanges (\S+) us`, n)))(t)
		long.Y = append(long.Y, 512*512*512/us/1e3)
	}
	large, small := []plot.Curve{blocked, long}, []plot.Curve{}
	for _, scheme := range []string{"fused", "two-stream", "resident"} {
		where := []string{"scheme=" + scheme, "steps_per_exchange="}
		large = append(large, curve("schemes-float64", results.Updates, 1e-9, append(where, "points=512")...))
		small = append(small, curve("schemes-float64", results.Step, 1, append(where, "points=64")...))
	}
	large = append(large, ideal(blocked.Y[0], func(one, n float64) float64 { return one * n }))
	small = append(small, ideal(small[2].Y[0], func(one, n float64) float64 { return one / n }))
	var got bytes.Buffer
	test.Check(t, plot.Encode(&got, ".svg", plot.Panels{Panels: []plot.Curves{
		chart("512³: updates per second (billions)", large...), chart("64³: microseconds per step", small...),
	}}))
	if os.Getenv("UPDATE") != "" {
		test.Check(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	if read(t, file) != got.String() {
		t.Errorf("%s does not draw the records; UPDATE=1 go test ./docs -run Records writes it", file)
	}
}

// madeBy is such as "0.2.0 at 95df59a".
func madeBy(r *results.Record) string {
	return strings.Replace(strings.TrimPrefix(r.Halox.String(), "halox "), " ", " at ", 1)
}

// made says which halox made a record, or a log whose first line says so.
func (p *page) made(file string) (string, error) {
	if filepath.Ext(file) == ".txt" {
		text, err := os.ReadFile(filepath.Join("../results", file))
		first := regexp.MustCompile(`^# halox (\S+) \((\w+)\)`).FindSubmatch(text)
		if first == nil {
			return "", fmt.Errorf("%s: its first line does not say which halox made it (%v)", file, err)
		}
		return fmt.Sprintf("%s at %s", first[1], first[2]), nil
	}
	r, err := p.record(file)
	if err != nil {
		return "", err
	}
	return madeBy(r), nil
}

// has reports whether a row has all of the labels, as a query gives them.
func has(row results.Row, where []string) bool {
	return !slices.ContainsFunc(where, func(label string) bool {
		if name, least, ok := strings.Cut(label, ">="); ok {
			bound, err := strconv.ParseFloat(least, 64)
			v, ok := row.Float(name)
			return err != nil || !ok || v < bound
		}
		name, value, ok := strings.Cut(label, "=")
		return !ok || strings.ReplaceAll(row.Text(name), " ", "-") != value
	})
}

func words(where []string) []string { return strings.Fields(strings.Join(where, " ")) }

// medians returns the medians of a metric in all rows of a record that have the labels.
func (p *page) medians(file, metric string, where ...string) (found []float64, err error) {
	r, err := p.record(file)
	if err != nil {
		return nil, err
	}
	for _, row := range r.Rows {
		if sample, ok := row.Get(results.Metric(metric)); ok && has(row, words(where)) {
			found = append(found, sample.Median)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no row has %v with a %s", file, where, metric)
	}
	return found, nil
}

// over joins the medians of all rows that have the labels.
func (p *page) over(join func([]float64) (float64, error)) func(string, string, ...string) (float64, error) {
	return func(file, metric string, where ...string) (float64, error) {
		all, err := p.medians(file, metric, where...)
		if err != nil {
			return 0, err
		}
		if all[0], err = join(all); err != nil {
			err = fmt.Errorf("%s: %w of %v", file, err, where)
		}
		return all[0], err
	}
}

func single(join func([]float64) float64) func([]float64) (float64, error) {
	return func(all []float64) (float64, error) { return join(all), nil }
}

func one(all []float64) (float64, error) {
	if len(all) > 1 {
		return 0, fmt.Errorf("say which of %d rows", len(all))
	}
	return all[0], nil
}

// middle is the median.
func middle(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func (p *page) reach(bound float64, file, metric string, where ...string) (int, error) {
	all, err := p.medians(file, metric, where...)
	return len(slices.DeleteFunc(all, func(v float64) bool { return v < bound })), err
}

// mean is the mean of value over the files whose names match a pattern: turns of one measurement.
func (p *page) mean(files, metric string, where ...string) (sum float64, err error) {
	all, err := glob(files)
	for _, file := range all {
		v, err := p.over(one)(file, metric, where...)
		if err != nil {
			return 0, err
		}
		sum += v / float64(len(all))
	}
	return sum, err
}

// glob returns the files below results that match a pattern, one at least.
func glob(pattern string) (files []string, err error) {
	all, err := filepath.Glob(filepath.Join("../results", pattern))
	for _, file := range all {
		files = append(files, strings.TrimPrefix(filepath.ToSlash(file), "../results/"))
	}
	if len(files) == 0 {
		err = cmp.Or(err, fmt.Errorf("no record %s", pattern))
	}
	return files, err
}

// labels returns the labels of a row except one as a query gives them, and name= for those of others that it lacks.
func labels(row results.Row, but string, others ...string) (all []string) {
	for _, l := range row.Labels {
		if l.Name != but {
			all = append(all, l.Name+"="+strings.ReplaceAll(l.Text(), " ", "-"))
		}
	}
	for _, name := range others {
		if name != but && row.Text(name) == "" {
			all = append(all, name+"=")
		}
	}
	return all
}

type joined = func([]float64) float64

// ratio joins the ratios of the rows that the records of two patterns have in common.
func (p *page) ratio(join joined) func(from, to, metric string, where ...string) (float64, error) {
	return func(from, to, metric string, where ...string) (float64, error) {
		return p.ratios(join, from, where, func(row results.Row) (a, b float64, err error) {
			same := labels(row, "", "norms", "sums")
			if a, err = p.mean(from, metric, same...); err == nil {
				b, err = p.mean(to, metric, same...)
			}
			return a, b, err
		})
	}
}

// across joins the ratios of rows that differ in one label only.
func (p *page) across(join joined) func(file, metric, label, a, b string, where ...string) (float64, error) {
	return func(file, metric, label, a, b string, where ...string) (float64, error) {
		a = label + "=" + strings.ReplaceAll(a, " ", "-")
		return p.ratios(join, file, append(where, a), func(row results.Row) (float64, float64, error) {
			other, err := p.over(one)(file, metric, append(labels(row, label, "variant"), label+"="+b)...)
			return row.Median(results.Metric(metric)), other, err
		})
	}
}

// ratios joins the ratios of b to a over the rows of the first file of a pattern that have the labels.
func (p *page) ratios(
	join joined, pattern string, where []string, of func(results.Row) (a, b float64, err error),
) (float64, error) {
	files, err := glob(pattern)
	if err != nil {
		return 0, err
	}
	r, err := p.record(files[0])
	if err != nil {
		return 0, err
	}
	var all []float64
	for _, row := range r.Rows {
		if !has(row, words(where)) {
			continue
		}
		a, b, err := of(row)
		if err != nil {
			return 0, err
		}
		all = append(all, b/a)
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("%s: no row has %v", pattern, where)
	}
	return join(all), nil
}

// chose counts the layouts of a bench of datatypes for which auto took at most so many times the least time.
func (p *page) chose(bound float64, file, direction string) (n int, err error) {
	r, err := p.record(file)
	if err != nil {
		return 0, err
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
		if auto.Median(results.Time)/least <= bound {
			n++
		}
	}
	return n, nil
}

func (p *page) checked(file string) (n int, err error) {
	r, err := p.record(file)
	if err != nil {
		return 0, err
	}
	for _, row := range r.Rows {
		if row.Checked {
			n++
		}
	}
	return n, nil
}

// logged returns the number that the group of a pattern matches in a text, the mean where there are several.
func logged(file, pattern string) (sum float64, err error) {
	text, err := os.ReadFile(filepath.Join("../results", file))
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

func hidden(file string) (float64, error) {
	t, err := trace.Read(filepath.Join("../results", file))
	if err != nil {
		return 0, err
	}
	behind, all := t.Hidden()
	return behind.Seconds() / all.Seconds(), nil
}
