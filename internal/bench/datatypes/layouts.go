// Package datatypes measures the engines that pack MPI datatypes, on the layouts of benchmarks and
// papers: on one device by [PackCommand], and on their way from one device to another and back by
// [PingPongCommand]. It draws the papers' figures of what was measured.
package datatypes

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// layouts say which layouts are measured, and for how long. What is left out is as the figure has
// it, where one is named.
type layouts struct {
	Suites      []string // nil for all
	Match       string   // a regular expression that the names fit
	Least, Most int64    // packed bytes; 0 for no limit
	Over        string   // the parameter that is drawn over; "" for packedBytes
	Figure      string   // of a paper, by its name; "" for bandwidth over the parameter
	Blocks      int      // thread blocks of a kernel at most; 0 for as many as suit
	Budget      time.Duration
	NoCheck     bool // what is written is not compared with the host's
	Listed      bool // the layouts are listed, and not measured
}

func (l *layouts) flags() []option.Flag {
	return []option.Flag{
		{Name: "suites", Value: &l.Suites, Help: "suites of layouts", Open: true, Choices: suiteNames()},
		{Name: "match", Value: &l.Match, Help: "only layouts whose name, suite/name/parameters, matches this `regexp`"},
		{Name: "least", Value: &l.Least, Help: "only layouts of at least so many packed `bytes`"},
		{Name: "most", Value: &l.Most, Help: "only layouts of at most so many packed `bytes`; 0 for no limit"},
		{Name: "list", Value: &l.Listed, Help: "list the layouts, with their packed bytes, and measure nothing"},
		{Name: "blocks", Value: &l.Blocks, Help: "most thread blocks that a kernel may take; 0 for as many as suit",
			To: option.NoLimit},
		{Name: "budget", Value: &l.Budget, Help: "how long to take for each measurement of a layout"},
		{Name: "over", Value: &l.Over, Help: "draw over this `parameter` of the layouts, such as block", Open: true},
		{Name: "figure", Value: &l.Figure, Help: "measure and draw what a paper's figure shows, by its `name`; list " +
			"prints the names"},
	}
}

// newLayouts returns the layouts that flags show as the default.
func newLayouts() layouts {
	return layouts{Suites: suiteNames(), Over: packedBytes, Budget: 20 * time.Millisecond}
}

// check refuses values that make no sense.
func (l *layouts) check() error {
	switch {
	case l.Least < 0 || l.Most < 0:
		return fmt.Errorf("--least %d --most %d: give positive numbers of bytes, or 0 for no limit", l.Least, l.Most)
	case l.Most > 0 && l.Least > l.Most:
		return fmt.Errorf("--least %d is more than --most %d: no layout has so many bytes", l.Least, l.Most)
	}
	return nil
}

// generalAxes fills in what was left open, and returns the axes of a plot of bandwidth over packed
// size, or another parameter.
func (l *layouts) generalAxes(title string) axes {
	l.Over = cmp.Or(l.Over, packedBytes)
	if l.Suites == nil {
		l.Suites = suiteNames()
	}
	a := axes{title: title, x: l.Over, xLabel: l.Over}
	if l.Match != "" {
		a.title += " of " + l.Match
	}
	if l.Over == packedBytes {
		a.xLabel = "packed bytes"
	}
	return a
}

// take takes the suite and the parameter of a figure, and refuses those that it has of its own.
func (l *layouts) take(a *axes) error {
	if l.Suites != nil {
		return ownOption(a, "suites")
	}
	if l.Over != "" {
		return ownOption(a, "over")
	}
	l.Suites, l.Over = []string{a.suite}, a.x
	return nil
}

// ownOption is the error of an option that a figure has of its own.
func ownOption(a *axes, name string) error {
	return fmt.Errorf("--figure %s has its own --%s: leave --%s out", a.name, name, name)
}

// choose returns the layouts that the options choose and the figure shows. No layout is an error.
func (l *layouts) choose(shows func(workload string) bool) (chosen []workloads.Workload, err error) {
	wanted, err := regexp.Compile(l.Match)
	if err != nil {
		return nil, fmt.Errorf("--match: %w", err)
	}
	for _, s := range suites() {
		if !slices.Contains(l.Suites, s.name) {
			continue
		}
		all, err := s.make()
		if err != nil {
			return nil, err
		}
		for _, w := range all {
			if wanted.MatchString(w.String()) && shows(w.String()) && w.Bytes >= max(1, l.Least) &&
				(l.Most == 0 || w.Bytes <= l.Most) {
				chosen = append(chosen, w)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no layout of %s fits --match, --least and --most: --list prints them all",
			strings.Join(l.Suites, ", "))
	}
	return chosen, nil
}

// checkAxis returns an error unless one of the layouts has the parameter to be drawn over.
func (l *layouts) checkAxis(a *axes, work []workloads.Workload) error {
	if slices.ContainsFunc(work, a.has) {
		return nil
	}
	return fmt.Errorf("--over %s: the layouts have no such parameter: --list prints them", l.Over)
}

// suite is a source of workloads.
type suite struct {
	name string
	make func() ([]workloads.Workload, error)
}

func suites() []suite {
	return []suite{
		{"ddtbench", workloads.DDTBench}, {"tempi", workloads.TEMPI}, {"jenkins", workloads.Jenkins},
		{"hand", workloads.HAND},
		{"wu", workloads.Wu}, {"shoc", workloads.SHOC}, {"hacc", workloads.HACC},
	}
}

func suiteNames() (names []string) {
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// layoutOf begins the row of a workload.
func layoutOf(w workloads.Workload) results.Row {
	return results.LayoutRow(w.Suite, w.Name, w.Params, w.Bytes)
}

// contiguousMessage returns the layout of so many bytes without gaps.
func contiguousMessage(bytes int64) (*packing.MessageLayout, error) {
	t, err := datatype.Contiguous(int(bytes), datatype.Byte)
	if err != nil {
		return nil, err
	}
	return packing.NewMessageLayout(t, 1)
}

// positive returns the number, or nil (no label) if it is 0.
func positive[N int | int64 | float64](n N) any {
	if n == 0 {
		return nil
	}
	return n
}

// allEngines names all engines among the values of an option.
const allEngines = "all"

// engines returns what an option that names engines may hold: all, auto and the names of engines.
func engines() []string {
	return append([]string{allEngines, string(packing.Auto)}, option.Texts(packing.Engines())...)
}

// chosenEngines returns those that the names of an option choose, auto last.
func chosenEngines(names []string) (all []packing.Engine) {
	for _, e := range append(packing.Engines(), packing.Auto) {
		if slices.Contains(names, string(e)) || e != packing.Auto && slices.Contains(names, allEngines) {
			all = append(all, e)
		}
	}
	return all
}

// contender is an engine, told how to work.
type contender struct {
	engine  packing.Engine
	variant string // the name of the options, if they are not the engine's own
	options packing.Options
}

// String names it as results do.
func (c contender) String() string { return c.row().Contender() }

// row begins the row of a contender.
func (c contender) row() results.Row {
	return results.NewRow().Label("engine", c.engine).Label("variant", c.variant)
}

// namesOf returns what contends as results name it.
func namesOf[C fmt.Stringer](all []C) (names []string) {
	for _, c := range all {
		names = append(names, c.String())
	}
	return names
}

// Where packed bytes lie.
const (
	ToDevice = "device"
	ToPinned = "pinned" // host memory mapped into the device
)

// packedBytes is the parameter that every layout has.
const packedBytes = "bytes"

// axes is what all figures have in common: curves over a parameter of the layouts.
type axes struct {
	name, title string
	suite       string // that all its layouts are of; "" for any
	x           string // the parameter, or packedBytes
	xLabel      string
}

// matrixAxes is time or rate over the edge of Wu's matrices.
func matrixAxes(name, title string) axes { return axes{name, title, "wu", "n", "matrix size"} }

// bytesAxes is time or rate over packed bytes.
func bytesAxes(name, suite, title string) axes {
	return axes{name, title, suite, packedBytes, "packed bytes"}
}

// has reports whether the workload has the parameter that the figure is over, above 0.
func (a *axes) has(w workloads.Workload) bool {
	x, ok := layoutOf(w).Float(a.x)
	return ok && x > 0
}

// medians gathers numbers over places on the axis of a figure.
type medians map[float64][]float64

// add adds a number at the place of the row's layout; one without a place is left out.
func (m medians) add(a *axes, row results.Row, y float64) {
	if x, ok := row.Float(a.x); ok && x > 0 && y > 0 {
		m[x] = append(m[x], y)
	}
}

// draw gives the curve the median of each place.
func (m medians) draw(c plot.Curve) plot.Curve {
	for _, x := range slices.SortedFunc(maps.Keys(m), cmp.Compare) {
		ys := slices.Sorted(slices.Values(m[x]))
		c.X, c.Y = append(c.X, x), append(c.Y, ys[len(ys)/2])
	}
	return c
}

// withPoints returns the curves that have points. One whose twin has none stands alone.
func withPoints(all []plot.Curve) (some []plot.Curve) {
	alone := false
	for _, c := range all {
		if c.Twin = c.Twin && !alone; len(c.X) > 0 {
			some = append(some, c)
		}
		alone = len(c.X) == 0
	}
	return some
}

// named returns the figure of that name.
func named[F interface{ head() *axes }](all []F, name string) (f F, err error) {
	var names []string
	for _, f := range all {
		if f.head().name == name {
			return f, nil
		}
		names = append(names, f.head().name)
	}
	return f, fmt.Errorf("--figure: there is no %q: take %s, or list", name, strings.Join(names, ", "))
}

// nothingShown is the error of a figure without curves.
type nothingShown struct{}

func (nothingShown) Error() string { return "nothing that it shows was measured" }

// Is reports that nothingShown is plot.ErrNothing.
func (nothingShown) Is(target error) bool { return target == plot.ErrNothing }

// chartOf is a chart of curves; without any it is an error, plot.ErrNothing.
func chartOf(c plot.Curves) (plot.Chart, error) {
	if len(c.Curves) == 0 {
		return nil, nothingShown{}
	}
	return c, nil
}
