package configs

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// merge lays the layers over the defaults of the schema, each over those before it. Settings travel through viper
// whole, so that a value still knows where it came from.
func merge(layers ...layer) *viper.Viper {
	v := viper.New()
	for _, k := range keys {
		if k.def != "" {
			v.SetDefault(k.name, defaultSetting(k))
		}
	}
	for _, l := range layers {
		for key, s := range l {
			v.Set(key, s)
		}
	}
	return v
}

// defaultSetting is what holds for a key that no source sets.
func defaultSetting(k key) setting {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(k.def), &doc); err != nil {
		panic(err) // the schema is wrong, which a test finds
	}
	return setting{key: k.name, node: doc.Content[0]}
}

// A checker decodes settings into a run, and checks how keys go together. A key with a problem is bad: checks leave it
// out.
type checker struct {
	Options
	file     string
	values   *viper.Viper // of setting
	problems Problems
	bad      map[string]bool
	run      *Run
}

// lookup returns what holds for a key.
func (c *checker) lookup(name string) (setting, bool) {
	s, ok := c.values.Get(name).(setting)
	return s, ok
}

// given reports whether a source sets a key to a value.
func (c *checker) given(name string) bool {
	s, ok := c.lookup(name)
	return ok && s.given()
}

// reject notes what the value of a key must be. The file is named for a default.
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

// missing notes that a key has to be set.
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

// decode sets every field of the run that has a key. A null stands for the default, which not every key has.
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
		switch why := k.decode(c.run, s.node); why {
		case "":
		case invalid:
			c.reject(k.name, "must be %s", k.constraint())
		default:
			c.reject(k.name, "%s", why)
		}
	}
}

// check checks everything. Sections that depend on others come after them.
func (c *checker) check() {
	c.decode()
	for _, name := range []string{"solver", "grid.size"} {
		if _, ok := c.lookup(name); !ok {
			c.missing(name)
		}
	}
	c.boundary()
	c.spacing()
	kind := c.stencil()
	c.expressions()
	c.heat(kind)
	c.devices()
	c.decomposition()
	c.exchange()
	c.output()
}

// boundary checks that the faces are those of the grid, and that an axis is periodic at both ends or at neither.
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

// dimensions says how many the grid has.
func (c *checker) dimensions() string {
	if n := c.run.Dims(); n > 1 {
		return fmt.Sprintf("%d dimensions", n)
	}
	return "one dimension"
}

// spacing checks the length of grid.spacing, or sets the one with which each axis is 1 long.
func (c *checker) spacing() {
	const name = "grid.spacing"
	g := &c.run.Grid
	if _, ok := c.lookup(name); !ok {
		for axis, n := range g.Size {
			b := c.run.Boundary
			a := solvers.Axis{Points: n, Ends: [2]boundary.Kind{b.Face(axis, 0).Kind, b.Face(axis, 1).Kind}}
			g.Spacing = append(g.Spacing, a.UnitSpacing())
		}
	} else if c.good(name, "grid.size") && len(g.Spacing) != len(g.Size) {
		c.reject(name, "must have one number per axis of the grid, %d", len(g.Size))
	}
}

// stencil finds the first stencil of the grid's dimensions that has what is wanted, and completes the section.
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

// expressions checks that no expression uses what the grid or the solver does not have.
func (c *checker) expressions() {
	c.uses("initial", c.run.Initial, false)
	c.uses("exact", c.run.Exact, false)
	for _, name := range slices.Sorted(maps.Keys(c.run.Boundary)) {
		c.uses("boundary."+name, c.run.Boundary[name].Value, c.run.Solver == SolverLaplace)
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

// heat checks the section heat, which only the heat solver has, and sets the time step that is left to halox.
func (c *checker) heat(kind stencil.Kind) {
	const dt = "heat.dt"
	h, good := c.run.Heat, true
	for _, k := range keys {
		if !strings.HasPrefix(k.name, "heat.") {
			continue
		}
		if good = c.good(k.name) && good; c.run.Solver == SolverLaplace && c.given(k.name) {
			c.reject(k.name, "must not be set with solver laplace")
		}
	}
	if c.run.Solver == SolverLaplace {
		c.run.Heat = nil
		return
	}
	if !good || !c.good("grid.size", "grid.spacing") || kind.Points == 0 || len(c.run.Grid.Spacing) == 0 {
		return
	}
	h.Stable = kind.StableStep(c.run.Grid.Spacing, h.Diffusivity)
	switch limit := h.Stable; {
	case limit <= 0 || math.IsInf(limit, 0):
		c.reject("heat.diffusivity", "must have a positive, finite stability limit, and that is %s", number(limit))
	case h.DT == 0:
		h.DT = limit
	case h.DT > limit && !h.Force:
		c.reject(dt, "must be at most %s to be stable on this grid, unless heat.force is set", number(limit))
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

// decomposition checks the parts of each axis. Where nothing else says how many devices each process has, they do.
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
		reject("must make as many subdomains for each%s, and makes %d", of, made)
	case count == 0 && known:
		c.run.Devices.Count = Count(made / processes)
	}
}

// exchange checks that the scheme goes with the rest, and completes the order.
func (c *checker) exchange() {
	const order = "exchange.order"
	e := &c.run.Exchange
	name := scheme.Scheme(e.Scheme)
	needs := name.Needs()
	known := autoOr(needs.Orders)[1:]
	if e.Scheme == Auto {
		known = orders()
	} else if !slices.Contains(scheme.All(), name) {
		return
	}
	switch given := c.given(order); {
	case !c.good(order) || e.Scheme == Auto && given:
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
		const reason = "must be one that takes values that change with time, as that of boundary.%s does"
		c.reject("exchange.scheme", reason, face)
	}
}

// changing returns the first face whose value depends on time, or "".
func (c *checker) changing() string {
	for _, name := range slices.Sorted(maps.Keys(c.run.Boundary)) {
		if usesName(c.run.Boundary[name].Value, "t") && c.good("boundary."+name) {
			return name
		}
	}
	return ""
}

// maxHistory is how many checks a history may have: each takes about a hundred bytes, in memory and in the record.
const maxHistory = 1 << 22

// output checks the plane of a picture and the length of a history.
func (c *checker) output() {
	const slice, history = "output.slice", "output.history"
	o, stop, size := c.run.Output, c.run.Stop, c.run.Grid.Size
	if len(size) == 1 && o.Picture != "" {
		c.reject("output.picture", "must not be set on a grid of one dimension: output.field writes the values")
	}
	axis, index, ok := parsePlane(o.Slice)
	switch {
	case !ok || len(size) == 0:
	case len(size) < 3:
		c.reject(slice, "must be auto on a grid of %s, which is shown whole", c.dimensions())
	case index >= size[axis]:
		c.reject(slice, "must be in the grid, from %c=0 to %[1]c=%d", "xyz"[axis], size[axis]-1)
	}
	if !o.History || !c.good(history, "stop.iterations", "stop.check_every") {
		return
	}
	if checks := stop.Iterations / stop.CheckEvery; checks > maxHistory {
		c.reject(history, "must keep at most %d checks, and would keep %d: raise stop.check_every", maxHistory, checks)
	}
}

// Complete returns what an override that begins with the text may be, each with what it means behind a tab: keys, or
// after = the words that are a key's values.
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
