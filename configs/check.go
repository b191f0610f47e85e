package configs

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// merge overlays the settings on the defaults of the schema; each layer overrides the layers before it. viper stores
// whole settings, so that each value keeps its origin. If a key has named entries, they are set inside its value, and
// parts contains their settings.
func merge(layers ...layer) (v *viper.Viper, parts map[string]setting) {
	v, parts = viper.New(), map[string]setting{}
	for _, k := range keys {
		if k.def != "" {
			v.SetDefault(k.name, defaultSetting(k))
		}
	}
	for _, l := range layers {
		for _, name := range slices.Sorted(maps.Keys(l)) { // a key comes before its entries
			if _, known := findKey(name); known {
				v.Set(name, l[name])
				below := join(name, "")
				maps.DeleteFunc(parts, func(part string, _ setting) bool { return strings.HasPrefix(part, below) })
				continue
			}
			of := name
			for known := false; !known; _, known = findKey(of) {
				of = of[:strings.LastIndex(of, ".")]
			}
			whole, ok := v.Get(of).(setting)
			if !ok || !whole.given() {
				whole = setting{key: of, from: l[name].from}
			}
			whole.node = setEntry(whole.node, strings.Split(name[len(of)+1:], "."), l[name].node)
			v.Set(of, whole)
			parts[name] = l[name]
		}
	}
	return v, parts
}

// defaultSetting returns the setting of a key that no source sets.
func defaultSetting(k key) setting {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(k.def), &doc); err != nil {
		panic(err) // the schema is invalid, which tests detect
	}
	return setting{key: k.name, node: doc.Content[0]}
}

// A checker decodes settings into a run and checks combinations of keys. A key with a problem is bad, and later checks
// skip it.
type checker struct {
	Options
	file     string
	values   *viper.Viper // holds values of type setting
	problems Problems
	bad      map[string]bool
	parts    map[string]setting // settings of named entries of keys, by path
	entered  map[string]setting // entries that were set individually
	run      *Run

	everyField Boundary // section boundary of solver equation: the faces of fields that have none of their own
}

// lookup returns the setting of a key.
func (c *checker) lookup(name string) (setting, bool) {
	s, ok := c.values.Get(name).(setting)
	return s, ok
}

// given reports whether a source sets a key to a value.
func (c *checker) given(name string) bool {
	s, ok := c.lookup(name)
	return ok && s.given()
}

// reject records that the value of a key does not satisfy a requirement. If the value is a default, the problem names
// the file.
func (c *checker) reject(name, reason string, args ...any) {
	c.bad[name] = true
	s, ok := c.lookup(name)
	if !ok {
		s = setting{key: name}
	}
	if !s.given() {
		s.from.source = c.file
	}
	c.problems.add(s.from, s.key, s.node, reason, args...)
}

// missing records that a key must be set.
func (c *checker) missing(name string) {
	if k, _ := findKey(name); !c.bad[name] {
		c.problems.add(origin{source: c.file}, name, nil, "must be set: %s", k.constraint())
	}
	c.bad[name] = true
}

// good reports whether all of the keys are set and have no problem.
func (c *checker) good(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c.bad[name] })
}

// decode sets every field of the run that has a key. A null selects the default of the key, if it has one.
func (c *checker) decode() {
	for _, k := range keys {
		s, ok := c.lookup(k.name)
		if ok && s.node.ShortTag() == "!!null" {
			if s.node.Value == "" {
				c.bad[k.name] = true
				c.problems.add(s.from, s.key, nil, "must have a value: %s", k.constraint())
			}
			c.values.Set(k.name, nil)
			s, ok = c.lookup(k.name)
		}
		if !ok {
			continue
		}
		if k.items != nil {
			c.items(k, s)
			continue
		}
		switch why := k.decode(c.run, s.node); why {
		case "":
		case invalid:
			c.reject(k.name, "must be %s", k.constraint())
		default:
			c.reject(k.name, "%s", why)
		}
	}
}

// boundary checks that the faces are the faces of the grid, and that each axis is periodic at both ends or at neither.
func (c *checker) boundary() {
	for axis := range 3 {
		for side := range 2 {
			name, other := "boundary."+faceName(axis, side), "boundary."+faceName(axis, 1-side)
			switch b := c.run.Boundary; {
			case axis >= c.run.Dims() && c.run.Dims() > 0:
				delete(b, faceName(axis, side))
				if c.given(name) {
					c.reject(name, "must not be set on a grid of %s", c.dimensions())
				}
			case !c.good(name, other):
			case b.Face(axis, side).Kind == solvers.Periodic && b.Face(axis, 1-side).Kind != solvers.Periodic:
				c.reject(name, "must not be periodic unless %s is", other)
			}
		}
	}
}

// dimensions describes the number of dimensions of the grid.
func (c *checker) dimensions() string {
	if n := c.run.Dims(); n > 1 {
		return fmt.Sprintf("%d dimensions", n)
	}
	return "one dimension"
}

// spacing checks the length of grid.spacing, or sets the spacing so that each axis has length 1.
func (c *checker) spacing() {
	const name = "grid.spacing"
	g := &c.run.Grid
	if _, ok := c.lookup(name); !ok {
		for axis, n := range g.Size {
			b := c.run.Boundary
			a := solvers.Axis{Points: n}
			for end := range a.Ends {
				a.Ends[end] = solvers.Condition{Kind: b.Face(axis, end).Kind, Half: g.Kind == Cells}
			}
			g.Spacing = append(g.Spacing, a.UnitSpacing())
		}
	} else if c.good(name, "grid.size") && len(g.Spacing) != len(g.Size) {
		c.reject(name, "must have one number per axis of the grid, %d", len(g.Size))
	}
}

// stencil finds the first stencil with the dimensions of the grid that satisfies section stencil, and completes the
// section.
func (c *checker) stencil() (kind stencil.Kind) {
	const points, shape = "stencil.points", "stencil.shape"
	want := &c.run.Stencil
	if want.Shape == Auto {
		want.Shape = ""
	}
	if !c.good(points, shape) || c.run.Dims() == 0 {
		return kind
	}
	all := stencil.Kinds(c.run.Dims())
	at := slices.IndexFunc(all, func(k stencil.Kind) bool {
		return (want.Points == 0 || k.Points == want.Points) && (want.Shape == "" || string(k.Shape) == want.Shape)
	})
	name := points
	if want.Points == 0 {
		name = shape
	}
	if at < 0 {
		var names []string
		for _, k := range all {
			names = append(names, fmt.Sprintf("%d (%s)", k.Points, k.Shape))
		}
		c.reject(name, "must select a stencil of %s, %s", c.dimensions(), either(names))
		return kind
	}
	kind = all[at]
	if h := c.run.Grid.Spacing; kind.OneSpacing() && c.good("grid.spacing") && slices.Max(h) != slices.Min(h) {
		c.reject(name, "must not be %s unless all axes have the same spacing, and they have %v", kind.Shape, h)
	}
	*want = Stencil{Points: kind.Points, Shape: string(kind.Shape)}
	return kind
}

// expressions checks that expressions use only variables that the grid and the solver have.
func (c *checker) expressions() {
	c.uses("initial", c.run.Initial, false)
	c.uses("exact", c.run.Exact.of(onlyField), false)
	if l := c.run.Laplace; c.run.Solver == SolverLaplace && timeName.MatchString(l.Source) {
		c.reject("laplace.source", "must not use t, since solver laplace has no time")
	}
	for _, name := range slices.Sorted(maps.Keys(c.run.Boundary)) {
		for _, src := range []string{c.run.Boundary[name].Value, c.run.Boundary[name].Transfer} {
			c.uses("boundary."+name, src, c.run.Solver == SolverLaplace)
		}
	}
}

// robin checks that the ghosts behind Robin faces exist.
func (c *checker) robin() {
	for axis, spacing := range c.run.Grid.Spacing {
		for side := range 2 {
			f, name := c.run.Boundary.Face(axis, side), "boundary."+faceName(axis, side)
			if f.Diffusivity != "" {
				c.reject(name, "must not have D, except with solver equation")
			}
			transfer, constant := orNumber(f.Transfer).(float64)
			one := boundary.Condition{Kind: f.Kind, Spacing: spacing, Transfer: transfer}
			if h := c.run.Heat; h != nil && c.run.Solver == SolverHeat {
				one.Diffusivity, constant = h.Diffusivity.along(axis), constant && h.Diffusivity.Formula == ""
			}
			const most = 2 // layers
			known := f.Kind == boundary.Robin && constant && c.good(name, "grid.spacing", "heat.diffusivity")
			if known && one.CheckAffine(most) != nil {
				c.reject(name, "must have a different h: with %v the denominator of its ghosts is 0", f.Transfer)
			}
		}
	}
}

func (c *checker) uses(name, src string, steady bool) {
	if src == "" || !c.good(name) {
		return
	}
	for i, v := range []string{"y", "j", "z", "k"} {
		if n := c.run.Dims(); n > 0 && n <= 1+i/2 && usesName(src, v) {
			c.reject(name, "must not use %s on a grid of %s", v, c.dimensions())
		}
	}
	if steady && usesName(src, "t") {
		c.reject(name, "must not use t, since solver laplace has no time")
	}
}

// usesName reports whether an expression uses a variable.
func usesName(src, name string) bool {
	e, err := stencil.Parse(src)
	return err == nil && e.Uses(name)
}

// heat checks section heat, which only the heat solver has, and sets the time step if halox chooses it.
func (c *checker) heat(kind stencil.Kind) {
	h, good := c.run.Heat, true
	for _, k := range keys {
		if strings.HasPrefix(k.name, "heat.") || strings.HasPrefix(k.name, "laplace.") {
			good = c.good(k.name) && good
		}
	}
	if c.run.Solver != SolverLaplace || c.run.Laplace.Source == "" {
		c.run.Laplace = nil
	}
	if c.run.Solver == SolverLaplace {
		c.run.Heat = nil
	}
	if !good || !c.good("grid.size", "grid.spacing") || kind.Points == 0 || len(c.run.Grid.Spacing) == 0 {
		return
	}
	if c.run.Solver == SolverHeat {
		c.stableStep(kind)
	}
	if e := c.run.Equation(); e != nil && len(c.problems) == 0 {
		p, err := e.Problem()
		c.inherited(err)
		dt, _ := c.lookup("heat.dt")
		decays := err == nil && text(dt.node) == Auto && p.Stable > 0 && p.Stable < 0.9*h.DT // by the source
		if e.TimeStep = 0; decays {
			p, err = e.Problem()
			c.inherited(err)
		}
		if err == nil && c.run.Heat != nil && (h.DT == 0 || decays) {
			h.DT = p.TimeStep
		}
	}
	if t := c.run.Stop.Time; c.run.Heat != nil && t > 0 && h.DT > 0 {
		steps := (&solvers.Problem{TimeStep: h.DT}).Steps(t)
		h.DT = t / float64(max(1, steps))
		c.stopTime(steps)
	}
}

// stableStep sets or checks heat.dt if the diffusivity is a number. Otherwise solvers.Equation does this.
func (c *checker) stableStep(kind stencil.Kind) {
	const dt = "heat.dt"
	h, dims := c.run.Heat, c.run.Dims()
	one, constant := h.Diffusivity.Number()
	switch all := h.Diffusivity.Axes; {
	case !constant && all != nil && len(all) != dims:
		c.reject("heat.diffusivity", "must have one number per axis of the grid, %d", dims)
		return
	case !constant && kind != stencil.Kinds(dims)[0]:
		c.reject("heat.diffusivity", "must be one number with a stencil other than %v", stencil.Kinds(dims)[0])
		return
	case !constant:
		return
	}
	h.Stable = kind.StableStep(c.run.Grid.Spacing, one)
	switch limit := h.Stable; {
	case limit <= 0 || math.IsInf(limit, 0):
		c.reject("heat.diffusivity", "must have a positive, finite stability limit, which is %s", number(limit))
	case h.DT == 0:
		h.DT = limit
	case h.DT > limit && !h.Force:
		c.reject(dt, "must be at most %s to be stable on this grid, unless heat.force is set", number(limit))
	}
}

// measure checks section measure.
func (c *checker) measure() {
	if c.run.Measure = c.definitions("measure"); len(c.problems) > 0 || len(c.run.Grid.Size) == 0 {
		return
	}
	e := c.run.Measured()
	if e == nil {
		return
	}
	_, err := e.Measures(c.run.Measure)
	eachPart(err, func(part string, err error) { c.part(part, "%v", err) })
}

// checkpoint completes section checkpoint, and removes it if no key of it is set.
func (c *checker) checkpoint() {
	p, given := c.run.Checkpoint, false
	for _, k := range keys {
		given = given || strings.HasPrefix(k.name, "checkpoint.") && c.given(k.name)
	}
	switch {
	case !given:
		c.run.Checkpoint = nil
	case p.Folder != "" || c.bad["checkpoint.folder"]:
	case p.Every.Steps > 0 || p.Every.Minutes > 0:
		p.Folder = "checkpoints"
	default:
		c.missing("checkpoint.folder")
	}
}

// faults checks that a run has checkpoints to start again from.
func (c *checker) faults() {
	if c.run.Faults.Restarts > 0 && c.run.Checkpoint == nil {
		c.reject("faults.restarts", "must be 0 without checkpoints to start again from: set checkpoint.every")
	}
}

// devices checks that devices.count and devices.ids agree.
func (c *checker) devices() {
	d := &c.run.Devices
	if len(d.IDs) == 0 || !c.good("devices.count") {
		return
	}
	if d.Count != 0 && int(d.Count) != len(d.IDs) {
		c.reject("devices.count", "must be the number of devices.ids, %d", len(d.IDs))
	}
	d.Count = Count(len(d.IDs))
}

// decomposition checks the number of parts of each axis. If no other key sets the number of devices per process, it is
// computed from the parts.
func (c *checker) decomposition() {
	parts, size, processes := c.run.Decomposition, c.run.Grid.Size, max(1, c.Processes)
	if parts == nil {
		return
	}
	reject := func(reason string, args ...any) { c.reject("decomposition", reason, args...) }
	if size != nil && len(parts) != len(size) {
		reject("must have one number per axis of the grid, %d", len(size))
		return
	}
	for axis, n := range size {
		if parts[axis] > n {
			reject("must cut %s into at most as many parts as it has points, %d", "xyz"[axis:axis+1], n)
			return
		}
	}
	most, made := maxDevices*processes, 1
	for _, p := range parts {
		made = min(made*min(p, most+1), most+1)
	}
	count, known := int(c.run.Devices.Count)*processes, c.good("devices.count", "devices.ids")
	of := ""
	if processes > 1 {
		of = fmt.Sprintf(" of %d processes", processes)
	}
	switch {
	case made > most:
		reject("must make at most %d subdomains", most)
	case count != 0 && made != count && known:
		reject("must make as many subdomains as there are devices%s, %d instead of %d", of, count, made)
	case made%processes != 0:
		reject("must make the same number of subdomains for each%s, but makes %d", of, made)
	case count == 0 && known:
		c.run.Devices.Count = Count(made / processes)
	}
}

// exchange checks that the scheme is consistent with the other keys, and sets the order.
func (c *checker) exchange() {
	const order = "exchange.order"
	e := &c.run.Exchange
	name := scheme.Scheme(e.Scheme)
	needs := name.Needs()
	known := autoOr(needs.Orders)[1:]
	if e.Scheme != Auto && !slices.Contains(scheme.All(), name) {
		return
	}
	switch given := c.given(order); {
	case !c.good(order) || e.Scheme == Auto:
	case given && len(known) == 0:
		with := slices.DeleteFunc(scheme.All(), func(s scheme.Scheme) bool { return len(s.Needs().Orders) == 0 })
		c.reject(order, "must not be set with scheme %s, only with %s", e.Scheme, either(autoOr(with)[1:]))
	case given && !slices.Contains(known, e.Order):
		c.reject(order, "must be %s with scheme %s", either(known), e.Scheme)
	case !given && len(known) > 0:
		e.Order = known[0]
	}
	if words := autoOr(needs.Paths); len(words) > 1 && e.Path != "" && !slices.Contains(words, e.Path) {
		c.reject("exchange.path", "must be %s with scheme %s", either(words), e.Scheme)
	}
	if e.Scheme != Auto && e.Steps > 1 && !needs.Groups && c.good("exchange.steps") {
		c.reject("exchange.steps", "must be 1 with scheme %s", e.Scheme)
	}
	if face := c.changing(); needs.Steady && face != "" {
		const reason = "must support values that vary in time, such as %s"
		c.reject("exchange.scheme", reason, face)
	}
}

// timeName matches the time in an expression.
var timeName = regexp.MustCompile(`\bt\b`)

// changing returns the first face whose value depends on time, or "".
func (c *checker) changing() string {
	all := c.run.boundaries()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[key])) {
			f := all[key][name]
			if c.good(join(key, name)) && timeName.MatchString(f.Value+" "+f.Transfer+" "+f.Diffusivity) {
				return join(key, name)
			}
		}
	}
	return ""
}

// maxHistory is the maximum number of checks in a history. Each takes about a hundred bytes, both in memory and in the
// record.
const maxHistory = 1 << 22

// output checks the plane and the range of a picture, and the length of a history.
func (c *checker) output() {
	const slice, history = "output.slice", "output.history"
	c.outputFields()
	c.outputLists()
	o, stop, size := c.run.Output, c.run.Stop, c.run.Grid.Size
	axis, at, index, ok := parsePlane(o.Slice)
	switch {
	case !ok || len(size) == 0:
	case len(size) < 3:
		c.reject(slice, "must be auto on a grid of %s, which is shown whole", c.dimensions())
	case index && at >= float64(size[axis]):
		c.reject(slice, "must be in the grid, from %c=0 to %[1]c=%d", "xyz"[axis], size[axis]-1)
	case !index && len(c.problems) == 0:
		p, err := c.run.Problem()
		if err != nil {
			break
		}
		first, last, h := p.Coordinate(axis, 0), p.Coordinate(axis, size[axis]-1), p.Spacing[axis]
		if at < first-h || at > last+h {
			c.reject(slice, "must be in the grid, whose points are from %s=%#.4g to %#.4g", o.Slice[:1], first, last)
		}
	}
	if r := o.Range; r != nil && (len(r) != 2 || !(r[0] < r[1])) {
		c.reject("output.range", "must be two numbers, the smaller one first, as [0, 1]")
	}
	if !o.History || !c.good(history, "stop.iterations", "stop.check_every") {
		return
	}
	if checks := stop.Iterations / stop.CheckEvery; checks > maxHistory && stop.Iterations < AnySteps {
		c.reject(history, "must keep at most %d checks, but would keep %d: raise stop.check_every", maxHistory, checks)
	}
}

// Complete returns the completions of an override that begins with the given text. Each is followed by a tab and its
// meaning. They are keys or, after =, the valid words for the key.
func Complete(begun string) (all []string) {
	name, _, valued := strings.Cut(begun, "=")
	for _, k := range keys {
		if !valued {
			all = append(all, k.name+"=\t"+k.about)
		} else if k.name == name && k.words != nil {
			for _, w := range k.words() {
				all = append(all, name+"="+w)
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, begun) })
}
