package configs

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/solvers"
)

// OnErrorStop is the value of Output.OnError for which a failing output ends the run.
const OnErrorStop = "stop"

// Every is the distance between two outputs. At most one of its fields is set; none means that it is not set.
type Every struct {
	Steps int     `json:"steps,omitempty"` // in steps
	Time  float64 `json:"time,omitempty"`  // in the time of the equation
}

const everyMust = "a number of steps, {steps: 100} or {time: 0.1}"

// decode reads a number of steps, or a mapping with one of the keys.
func (e *Every) decode(n *yaml.Node) (ok bool) {
	*e = Every{}
	if n.Kind != yaml.MappingNode {
		e.Steps, ok = integer(n)
		return ok && e.Steps > 0
	}
	if len(n.Content) != 2 {
		return false
	}
	switch value := n.Content[1]; text(n.Content[0]) {
	case "steps":
		e.Steps, ok = integer(value)
		return ok && e.Steps > 0
	case "time":
		e.Time, ok = decimal(value)
		return ok && e.Time > 0
	}
	return false
}

// Statistics are quantities of fields that are accumulated at each point, by the names of their fields.
type Statistics struct {
	Mean     []string `json:"mean,omitempty"`     // fields whose mean is accumulated
	Variance []string `json:"variance,omitempty"` // fields whose variance and mean are accumulated
	Min      []string `json:"min,omitempty"`      // fields whose smallest values are kept
	Max      []string `json:"max,omitempty"`      // fields whose largest values are kept
	From     Every    `json:"from,omitzero"`      // first step or time of a sample
	Every    Every    `json:"every,omitzero"`     // distance between two samples
	Folder   string   `json:"folder,omitempty"`   // folder of the .npy files; "": statistics
}

// list returns all statistics, also the means of variances, each once.
func (s *Statistics) list() (all []solvers.Statistic) {
	for _, of := range []struct {
		kind   solvers.StatisticKind
		fields []string
	}{
		{solvers.Mean, slices.Concat(s.Mean, s.Variance)}, {solvers.Variance, s.Variance}, {solvers.Min, s.Min},
		{solvers.Max, s.Max},
	} {
		for _, f := range of.fields {
			if one := (solvers.Statistic{Kind: of.kind, Field: f}); !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

// Files returns the names of the files of all statistics, by the name of the statistic.
func (s *Statistics) Files() (all Files) {
	for _, one := range s.list() {
		all = append(all, File{Field: one.Name(), Path: filepath.Join(cmp.Or(s.Folder, "statistics"), one.Name()+".npy")})
	}
	return all
}

// statistics checks section output.statistics.
func (c *checker) statistics() {
	const section = "output.statistics."
	s, names := c.run.Output.Statistics, c.fieldNames()
	all := s.list()
	for i, fields := range [][]string{s.Mean, s.Variance, s.Min, s.Max} {
		for _, f := range fields {
			if !slices.Contains(names, f) {
				c.reject(section+[]string{"mean", "variance", "min", "max"}[i], "must be a list of fields, which are %s",
					strings.Join(names, ", "))
			}
		}
	}
	for _, one := range all {
		if slices.Contains(names, one.Name()) {
			c.reject(section+string(one.Kind), "must not be set for %s, since %s is the name of a field", one.Field, one.Name())
		}
	}
	c.timed(section+"from", s.From)
	c.timed(section+"every", s.Every)
	switch every := s.Every != (Every{}); {
	case len(all) > 0 && !every:
		c.missing(section + "every")
	case len(all) == 0 && (every || s.From != (Every{})):
		c.missing(section + "mean")
	}
}

// A Probe writes the values of fields at some points to a file while the run goes on.
type Probe struct {
	At     []float64 `json:"at,omitempty"`     // coordinates of a point, one per axis; nil with Line
	Line   *Line     `json:"line,omitempty"`   // points on a line; nil with At
	Every  Every     `json:"every"`            // distance between two rows of the file
	Fields []string  `json:"fields,omitempty"` // names of fields and statistics; nil: all fields
	File   string    `json:"file"`             // a .csv file
}

// A Line is a line of points in the grid, including both ends.
type Line struct {
	From   []float64 `json:"from"`             // coordinates of the first point, one per axis
	To     []float64 `json:"to"`               // coordinates of the last point, one per axis
	Points int       `json:"points,omitempty"` // number of points; 0: as many as the longest axis of the line has
}

const (
	atMust   = "one number per axis, as [0.5, 0.5]"
	lineMust = "{from: [...], to: [...]} with one number per axis, and perhaps points"
)

var probeKeys = []key{
	{name: "at", must: atMust, about: "Coordinates of a point."},
	{name: "line", must: lineMust,
		about: "Equally spaced points on a line. Without `points`, as many as the grid has along the line."},
	{name: "every", must: everyMust, required: true, about: "When a row is written."},
	{name: "fields", must: fieldsMust, about: "Fields and statistics; default all fields."},
	{name: "file", def: "probes.csv", endings: list(".csv"), about: "The file."},
}

const fieldsMust = "a list of names, as [u, v]"

func (l *Line) decode(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		ok, value := false, n.Content[i+1]
		switch text(n.Content[i]) {
		case "from":
			l.From, ok = each(value, decimal)
		case "to":
			l.To, ok = each(value, decimal)
		case "points":
			l.Points, ok = integer(value)
			ok = ok && l.Points >= 2
		}
		if !ok {
			return false
		}
	}
	return l.From != nil && l.To != nil
}

// textItem reads an item of a list of texts.
func textItem(n *yaml.Node) (string, bool) {
	return text(n), n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value != ""
}

// items decodes a list of mappings, each with the keys in key.items, into a slice of structs.
func (c *checker) items(k key, s setting) {
	all := reflect.ValueOf(c.run.field(k)).Elem()
	if s.node.Kind != yaml.SequenceNode {
		c.reject(k.name, "must be %s", k.constraint())
		return
	}
	var names []string
	for _, sub := range k.items {
		names = append(names, sub.name)
	}
	for i, n := range s.node.Content {
		path, item, given := fmt.Sprintf("%s.%d", k.name, i+1), reflect.New(all.Type().Elem()), map[string]bool{}
		at := s.from
		if at.line > 0 && n.Line > 0 {
			at.line = n.Line
		}
		c.parts[path] = setting{path, nil, at}
		for _, e := range c.entries(path, at, n) {
			sub := slices.IndexFunc(k.items, func(sub key) bool { return sub.name == e.name })
			given[e.name] = true
			if sub < 0 {
				c.part(join(path, e.name), "unknown key, must be one of %s", strings.Join(names, ", "))
			} else if why := k.items[sub].decodeTo(c.run, fieldOf(item, e.name), e.value); why == invalid {
				c.part(join(path, e.name), "must be %s", k.items[sub].constraint())
			} else if why != "" {
				c.part(join(path, e.name), "%s", why)
			}
		}
		for _, sub := range k.items {
			if sub.required && !given[sub.name] {
				c.part(join(path, sub.name), "must be set: %s", sub.constraint())
			} else if sub.def != "" && !given[sub.name] {
				sub.decodeTo(c.run, fieldOf(item, sub.name), defaultSetting(sub).node)
			}
		}
		all.Set(reflect.Append(all, item.Elem()))
	}
}

// A Series is a series of files with fields, written while the run goes on.
type Series struct {
	Every     Every    `json:"every"`               // distance between two outputs
	Format    string   `json:"format"`              // "vti", "zarr" or "npy"
	Folder    string   `json:"folder"`              // folder of the files
	Name      string   `json:"name"`                // the names of the files begin with it
	Fields    []string `json:"fields,omitempty"`    // names of fields and statistics; nil: all fields
	Slice     Plane    `json:"slice,omitempty"`     // coordinates of planes, by axis; nil: all points
	Box       Ranges   `json:"box,omitempty"`       // coordinates of both ends, by axis; nil: all points
	Coarsen   int      `json:"coarsen,omitempty"`   // distance between two points, in those of the grid; 0: 1
	Precision string   `json:"precision,omitempty"` // "float64" or "float32"; "": that of the run
}

// A Plane has a coordinate per axis to which it is perpendicular.
type Plane map[string]float64

// Ranges are the coordinates of the first and the last point on some axes.
type Ranges map[string][]float64

var seriesKeys = []key{
	{name: "every", must: everyMust, required: true, about: "When fields are written."},
	{name: "format", def: "vti", words: list("vti", "zarr", "npy"),
		about: "Files for ParaView (`vti`), a Zarr store (`zarr`), or a NumPy file per field and step."},
	{name: "folder", def: "series", must: "a folder", about: "Folder of the files."},
	{name: "name", def: "fields", must: "a name without / and .", about: "Beginning of the file names."},
	{name: "fields", must: fieldsMust, about: "Fields and statistics; default all fields."},
	{name: "slice", must: "a coordinate by axis, as {z: 0.5}", about: "The plane of points nearest to a coordinate."},
	{name: "box", must: "both ends by axis, as {x: [0.2, 0.8]}",
		about: "The points between two coordinates, each rounded to the nearest point."},
	{name: "coarsen", least: 1, about: "Every n-th point along each axis, from the first on."},
	{name: "precision", words: list("float64", "float32"), about: "Type of the values; default that of the run."},
}

// axisValues reads a mapping from names of axes.
func axisValues[T any](n *yaml.Node, read func(*yaml.Node) (T, bool)) (all map[string]T, ok bool) {
	all = map[string]T{}
	ok = n.Kind == yaml.MappingNode && len(n.Content) > 0
	for i := 0; ok && i+1 < len(n.Content); i += 2 {
		axis := text(n.Content[i])
		all[axis], ok = read(n.Content[i+1])
		ok = ok && slices.Contains([]string{"x", "y", "z"}, axis)
	}
	return all, ok
}

// series checks a series.
func (c *checker) series(path string, s *Series) {
	c.timed(join(path, "every"), s.Every)
	if strings.ContainsAny(s.Name, `/\.`) {
		c.part(join(path, "name"), "must be a name without / and .")
	}
	inGrid := func(key, name string, at ...float64) {
		axis := strings.Index("xyz", name)
		if axis >= c.run.Dims() {
			c.part(join(path, key), "must not use %s on a grid of %s", name, c.dimensions())
			return
		}
		for _, x := range at {
			c.onAxis(join(path, key), axis, x)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Slice)) {
		at := s.Slice[name]
		if inGrid("slice", name, at); s.Box[name] != nil {
			c.part(join(path, "box"), "must not have %s, as slice has it", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Box)) {
		ends := s.Box[name]
		if inGrid("box", name, ends...); ends[0] > ends[1] {
			c.part(join(path, "box"), "must have the lower end of %s first", name)
		}
	}
}

// outputLists checks the outputs that are written while the run goes on.
func (c *checker) outputLists() {
	if len(c.problems) > 0 {
		return
	}
	c.statistics()
	o, names := c.run.Output, c.fieldNames()
	for _, one := range o.Statistics.list() {
		names = append(names, one.Name())
	}
	known := func(path string, fields []string) {
		for _, f := range fields {
			if !slices.Contains(names, f) {
				c.part(path, "must be of the fields and statistics %s, got %s", strings.Join(names, ", "), f)
			}
		}
	}
	used := map[string]string{}
	unique := func(path, file string) {
		file = filepath.Clean(file)
		if first := used[file]; first != "" {
			c.part(path, "must be different from %s, which is also %s", first, file)
		}
		used[file] = cmp.Or(used[file], path)
	}
	for i, p := range o.Probes {
		path := fmt.Sprintf("output.probes.%d", i+1)
		switch {
		case (p.At == nil) == (p.Line == nil):
			c.part(path, "must have either at or line")
		case p.Line != nil:
			c.inGrid(join(path, "line"), p.Line.From)
			c.inGrid(join(path, "line"), p.Line.To)
		default:
			c.inGrid(join(path, "at"), p.At)
		}
		c.timed(join(path, "every"), p.Every)
		known(join(path, "fields"), p.Fields)
		unique(join(path, "file"), p.File)
	}
	for i, s := range o.Series {
		path := fmt.Sprintf("output.series.%d", i+1)
		c.series(path, &s)
		known(join(path, "fields"), s.Fields)
		unique(join(path, "name"), filepath.Join(s.Folder, s.Name)+"."+s.Format)
	}
}

// fieldNames returns the names of the fields.
func (c *checker) fieldNames() []string {
	names := []string{onlyField}
	if c.run.Solver == SolverEquation {
		names = nil
		for _, f := range c.run.Fields {
			names = append(names, f.Name)
		}
	}
	return names
}

// timed rejects a distance in time without a time.
func (c *checker) timed(path string, e Every) {
	if e.Time > 0 && c.run.Time != nil && c.run.TimeStep() == 0 {
		c.part(path, "must be in steps, since time.dt changes from step to step")
	} else if e.Time > 0 && c.run.TimeStep() == 0 {
		c.part(path, "must be in steps, since solver %s has no time", c.run.Solver)
	}
}

// inGrid checks the coordinates of a point.
func (c *checker) inGrid(path string, at []float64) {
	if len(at) != c.run.Dims() {
		c.part(path, "must have one number per axis of the grid, %d", c.run.Dims())
		return
	}
	for axis, x := range at {
		c.onAxis(path, axis, x)
	}
}

// onAxis checks a coordinate.
func (c *checker) onAxis(path string, axis int, x float64) {
	low, high := c.extent(axis)
	if slack := 1e-9 * (high - low); !(x >= low-slack && x <= high+slack) {
		c.part(path, "must be in the grid, whose %s is from %s to %s", "xyz"[axis:axis+1], number(low), number(high))
	}
}

// extent returns the coordinates of both ends of an axis.
func (c *checker) extent(axis int) (low, high float64) {
	g, b := c.run.Grid, c.run.Boundary
	if len(c.run.Fields) > 0 {
		b = c.run.Fields[0].Boundary
	}
	a := solvers.Axis{Points: g.Size[axis]}
	for end := range a.Ends {
		a.Ends[end] = solvers.Condition{Kind: b.Face(axis, end).Kind, Half: g.Kind == Cells}
	}
	if g.Start != nil {
		low = g.Start[axis]
	}
	return low, low + g.Spacing[axis]/a.UnitSpacing()
}
