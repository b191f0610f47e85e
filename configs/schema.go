package configs

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/results/output"
)

// Limits of what a config may ask for.
const (
	maxDevices = 1024    // per process
	maxGroup   = 16      // steps between two exchanges
	maxPoints  = 1 << 48 // of a grid

	// Spacings outside these limits have squares, or coefficients made of them, that float64 cannot hold.
	minSpacing, maxSpacing = 1e-100, 1e100
)

// Options are what Load takes besides the file. All may be left out except Stencils. Lists of names that are nil allow
// any name.
type Options struct {
	// CheckExpression parses the expression and says which variables it uses, or, in one line, what is wrong with it.
	// nil: expressions are taken as they are.
	CheckExpression func(src string) (uses func(variable string) bool, err error)
	Schemes         []Scheme       // that exchange.scheme may name besides auto
	Paths           []string       // that exchange.path may name besides auto
	Networks        []string       // that exchange.network may name besides auto
	Boundaries      []BoundaryKind // that faces may have besides periodic
	// Stencils are those that the section stencil may select. Of those that match the first is taken.
	Stencils []StencilKind
	// UnitSpacing returns the default of grid.spacing: the distance between the points of an axis of length 1, from
	// their number and the conditions at its ends. nil: it must be set.
	UnitSpacing func(points int, ends [2]FaceKind) float64
	// Processes is how many share the grid, each with devices.count devices; 0: one.
	Processes int
	// Set holds overrides "key=value", the value in YAML: "grid.size=[64, 64]", "boundary.x-=periodic".
	Set []string
	// Environ holds "NAME=value" as os.Environ does. Only names that begin with HALOX_ matter.
	Environ []string
	// Warn is told of variables HALOX_... that set no key. nil: they are ignored.
	Warn func(Problem)
}

// A Scheme is what exchange.scheme may name, with what it needs of the rest of a config.
type Scheme struct {
	Name   string
	Orders []string // that it can take, its default first; nil if it has none
	Paths  []string // that it can take besides auto; nil for all
	Steady bool     // no value at a face may change with time
	Groups bool     // it can run several steps between two exchanges
}

// A StencilKind is a stencil that a config may select.
type StencilKind struct {
	Dims int
	Stencil
	OneSpacing bool // it needs the same spacing on all axes
	// StableStep returns the largest time step with which the explicit heat solver is stable.
	StableStep func(spacing []float64, diffusivity float64) float64
}

// A BoundaryKind is a boundary condition that a face may have: written as its name, or as {name: value} if it takes a
// value, which is a number or an expression.
type BoundaryKind struct {
	Name  FaceKind
	Value bool
}

// A key is an entry of the schema: all that is known of one key of a config. Decoding, which goes by the type of the
// field of Run that has the name, defaults, messages, the names of environment variables, the reference page and
// completion follow from it. What is left are checks of how keys go together.
type key struct {
	name  string // the path to it, with dots: "grid.size"
	def   string // the default as it would be written in YAML; "" if it has none
	must  string // what it must be, in words, unless that is one of words or endings or from least to most
	about string // what it means, for the reference

	words       func(o *Options) []string // all words that it may be; any word if there are none
	endings     func() []string           // of a file
	least, most int                       // of whole numbers; no limit if most is 0
	expression  bool                      // it is a number or an expression
	guard       bool                      // it switches a check off: no message suggests it
}

// list is the words of a key that do not depend on the options.
func list(words ...string) func(*Options) []string { return func(*Options) []string { return words } }

// constraint says what a value of the key must be, in words.
func (k key) constraint(o *Options) string {
	if k.words != nil {
		if words := k.words(o); len(words) > 0 {
			return either(words)
		}
	}
	switch {
	case k.endings != nil:
		return "a file that ends in " + either(k.endings())
	case k.expression:
		return expressionMust
	case k.must != "":
		return k.must
	case k.most > 0:
		return fmt.Sprintf("a whole number from %d to %d", k.least, k.most)
	}
	return fmt.Sprintf("a whole number of at least %d", k.least)
}

const (
	faceMust       = "a boundary condition, as a word or as {word: a number or an expression}"
	expressionMust = "a number or an expression"
	axesMust       = "2 or 3 whole numbers of at least 1, as "
)

// keys is the schema, in the order of the reference.
var keys = slices.Concat([]key{
	{name: "solver", words: list(SolverLaplace, SolverHeat),
		about: "The equation: the solution of Laplace's equation, or the heat equation in time."},
	{name: "grid.size", must: axesMust + "[nx, ny] or [nx, ny, nz]", least: 1,
		about: "Points on each axis, x first. Faces are not counted."},
	{name: "grid.spacing", must: "a number from 1e-100 to 1e100, or one per axis",
		about: "Distance between points, one for all axes or one per axis. Without it each axis is 1 long."},
	{name: "stencil.points", def: Auto, must: "auto or a number of points", words: pointsOfStencils,
		about: "Number of points that a step reads."},
	{name: "stencil.shape", def: Auto, must: "auto or a shape", words: shapesOfStencils,
		about: "Shape of the points that a step reads."},
	{name: "precision", def: "float64", words: list("float64", "float32"), about: "Type of the field."},
}, boundaryKeys(), []key{
	{name: "initial", def: "0", expression: true, about: "The field at the start."},
	{name: "exact", expression: true, about: "The exact solution, with which the result is compared."},
	{name: "heat.dt", def: Auto, must: "auto or a positive number",
		about: "Time between two steps; auto is the largest that is stable."},
	{name: "heat.diffusivity", def: "1", must: "a positive number", about: "Diffusivity of the heat equation."},
	{name: "heat.force", def: "false", words: list("true", "false"), guard: true,
		about: "Take heat.dt even if it is not stable."},
	{name: "stop.iterations", def: "1000", least: 1, about: "Steps at most."},
	{name: "stop.tolerance", must: "a positive number, or null for none",
		about: "Change per step at which the run ends."},
	{name: "stop.norm", def: "max", words: list("max", "l2"), about: "Norm of the change."},
	{name: "stop.check_every", def: "100", least: 1, about: "Steps between two checks of the change."},
	{name: "stop.sums", def: "reproducible", words: list("reproducible", "fast"),
		about: "How sums of norms are computed."},
	{name: "devices.backend", def: Auto, words: list(Auto, "cuda", "host"), about: "What the run runs on."},
	{name: "devices.count", def: Auto, must: "auto or a whole number from 1 to 1024", least: 1, most: maxDevices,
		about: "Devices per process; auto is all that fit."},
	{name: "devices.ids", must: "different whole numbers from 0 to 1023, as [0, 1]", most: maxDevices - 1,
		about: "The backend's numbers of the devices. Without it the first devices.count are taken."},
	{name: "decomposition", def: Auto, must: "auto, or " + axesMust + "[px, py] or [px, py, pz]", least: 1,
		about: "Subdomains along each axis."},
	{name: "exchange.scheme", def: Auto, must: "auto or a scheme", words: func(o *Options) []string {
		return autoOr(namesOf(o.Schemes))
	}, about: "Scheme of the steps; auto is the fastest of those that are tried."},
	{name: "exchange.order", must: "an order of the scheme", words: func(o *Options) []string {
		return ordersOf(o.Schemes)
	}, about: "Order in which a scheme sends. Without it each scheme takes its own."},
	{name: "exchange.path", def: Auto, must: "auto or a path", words: func(o *Options) []string {
		return autoOr(o.Paths)
	}, about: "Path of messages between devices."},
	{name: "exchange.network", def: Auto, must: "auto or a network", words: func(o *Options) []string {
		return autoOr(o.Networks)
	}, about: "Network of messages between processes."},
	{name: "exchange.steps", def: "1", must: "auto or a whole number from 1 to 16", least: 1, most: maxGroup,
		about: "Steps between two exchanges; auto tries some."},
	{name: "output.picture", endings: files(output.Picture), about: "Picture of the result."},
	{name: "output.slice", def: Auto, must: "auto or a plane such as z=16",
		about: "Plane of a picture in 3 dimensions; auto is the middle of z."},
	{name: "output.field", endings: files(output.Field), about: "The field, for NumPy."},
	{name: "output.record", endings: func() []string { return []string{".json"} }, about: "Record of the run: config, times, norms."},
	{name: "output.history", def: "false", words: list("true", "false"),
		about: "Keep the norms of every check in the record."},
})

// files returns the extensions of the output files of a kind: all formats that are registered.
func files(kind output.Kind) func() []string {
	return func() []string { return output.Extensions(kind) }
}

// boundaryKeys are the keys of axes and faces. An axis stands for its faces, see resolveAxes.
func boundaryKeys() (all []key) {
	for axis := range 3 {
		name := "xyz"[axis : axis+1]
		face := key{name: "boundary." + name, must: faceMust, words: formsOfFaces, about: "Both faces of " + name + "."}
		all = append(all, face)
		for side, end := range []string{"low", "high"} {
			face.name, face.def = "boundary."+faceName(axis, side), "{dirichlet: 0}"
			face.about = fmt.Sprintf("The face at the %s end of %s.", end, name)
			all = append(all, face)
		}
	}
	return all
}

// free reports whether the value is free text, which need not be quoted where it stands alone.
func (k key) free() bool { return k.expression || k.endings != nil || k.name == "output.slice" }

// field returns a pointer to the field of a run that has the key: by the names of its fields in YAML. Faces have none.
func (r *Run) field(k key) any {
	v := reflect.ValueOf(r).Elem()
	for _, part := range strings.Split(k.name, ".") {
		v = reflect.Indirect(v).FieldByNameFunc(func(name string) bool {
			f, _ := reflect.Indirect(v).Type().FieldByName(name)
			tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			return tag == part
		})
		if v.Type() == reflect.TypeFor[Boundary]() {
			return nil
		}
	}
	return v.Addr().Interface()
}

// invalid is the reason for a value that is not what key.constraint says.
const invalid = "invalid"

// decode sets the field of a run that has the key. It says why it cannot: invalid, or a sentence.
func (k key) decode(run *Run, n *yaml.Node, o *Options) (why string) {
	ok, into := true, run.field(k)
	defer func() {
		if why != "" && into != nil {
			reflect.ValueOf(into).Elem().SetZero()
		}
	}()
	switch p := into.(type) {
	case *string:
		return k.decodeText(p, n, o)
	case *int, *Count:
		value, whole := integer(n)
		_, auto := p.(*Count)
		if auto = (auto || k.def == Auto) && text(n) == Auto; auto {
			return ""
		}
		ok = whole && k.inRange(value) && (k.words == nil || slices.Contains(k.words(o), strconv.Itoa(value)))
		reflect.ValueOf(p).Elem().SetInt(int64(value))
	case *float64:
		if k.def == Auto && text(n) == Auto {
			return ""
		}
		*p, ok = decimal(n)
		ok = ok && *p > 0
	case *bool:
		value, err := strconv.ParseBool(strings.ToLower(text(n)))
		*p, ok = value, err == nil && n.ShortTag() == "!!bool"
	case *[]float64:
		*p, ok = spacings(n, max(2, run.Dims()))
	case *[]int:
		*p, ok = each(n, k.inList)
		if k.name == "grid.size" && ok {
			ok, why = axes(*p), tooLarge(*p)
		} else {
			ok = ok && !repeats(*p)
		}
	case *Parts:
		if text(n) == Auto {
			return ""
		}
		*p, ok = each(n, k.inList)
		ok = ok && axes(*p)
	case nil:
		run.Boundary[lastName(k.name)], why = faceOf(n, o)
	}
	if !ok {
		why = invalid
	}
	return why
}

func (k key) inRange(value int) bool { return value >= k.least && (k.most == 0 || value <= k.most) }

// inList reads an item of a list of whole numbers.
func (k key) inList(n *yaml.Node) (int, bool) {
	value, ok := integer(n)
	return value, ok && k.inRange(value)
}

// decodeText reads an expression, the name of a file, a plane or a word.
func (k key) decodeText(to *string, n *yaml.Node, o *Options) (why string) {
	*to = text(n)
	isText := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
	ok := true
	switch {
	case k.expression:
		*to, why = expressionOf(n, o)
	case k.endings != nil:
		ok = isText && (*to == "" || slices.Contains(k.endings(), strings.ToLower(filepath.Ext(*to))))
	case k.words == nil:
		_, _, plane := parsePlane(*to)
		ok = plane || *to == Auto
	default:
		words := k.words(o)
		ok = *to != "" && (len(words) == 0 || slices.Contains(words, *to))
	}
	if !ok {
		return invalid
	}
	return why
}

// axes reports whether a list has an item per axis of a grid.
func axes(list []int) bool { return len(list) == 2 || len(list) == 3 }

func repeats(list []int) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(list)))) < len(list)
}

// tooLarge says that a grid has too many points; "" if it does not.
func tooLarge(size []int) string {
	left := int64(maxPoints)
	for _, n := range size {
		left /= int64(n)
	}
	if left == 0 {
		return fmt.Sprintf("must have at most 2^48 = %d points", int64(maxPoints))
	}
	return ""
}

// spacings reads one number, which holds for so many axes, or one per axis.
func spacings(n *yaml.Node, axes int) ([]float64, bool) {
	spacing := func(n *yaml.Node) (float64, bool) {
		h, ok := decimal(n)
		return h, ok && h >= minSpacing && h <= maxSpacing
	}
	if h, one := spacing(n); one {
		return slices.Repeat([]float64{h}, axes), true
	}
	return each(n, spacing)
}

// formsOfFaces lists how a face may be written.
func formsOfFaces(o *Options) []string {
	if len(o.Boundaries) == 0 {
		return nil
	}
	words := []string{string(Periodic)}
	for _, b := range o.Boundaries {
		form := string(b.Name)
		if b.Value {
			form = fmt.Sprintf("{%s: %s}", form, expressionMust)
		}
		words = append(words, form)
	}
	return words
}

// faceOf reads a boundary condition.
func faceOf(n *yaml.Node, o *Options) (f Face, why string) {
	name, isWord := n, n.Kind == yaml.ScalarNode
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2:
		name = n.Content[0]
	case !isWord:
		return f, invalid
	}
	f.Kind = FaceKind(text(name))
	known := len(o.Boundaries) == 0 && f.Kind != ""
	for _, b := range append([]BoundaryKind{{Name: Periodic}}, o.Boundaries...) {
		known = known || b.Name == f.Kind && b.Value == !isWord
	}
	if !known {
		return Face{}, invalid
	}
	if !isWord {
		f.Value, why = expressionOf(n.Content[1], o)
	}
	if why == invalid {
		why = "must have " + expressionMust + " as its value, in quotes if it holds : or #"
	}
	return f, why
}

// expressionOf reads a number or an expression. Numbers are written anew, since YAML has spellings of its own.
func expressionOf(n *yaml.Node, o *Options) (src, why string) {
	if value, ok := decimal(n); ok {
		return number(value), ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		return "", invalid
	}
	if o.CheckExpression != nil {
		if _, err := o.CheckExpression(n.Value); err != nil {
			return "", fmt.Sprintf("must be an expression: %v", err)
		}
	}
	return n.Value, ""
}

// autoOr puts auto before words, unless there are none.
func autoOr(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	return append([]string{Auto}, words...)
}

// distinct returns what the items give, each once, in the order of the items.
func distinct[T any](items []T, of func(T) []string) (all []string) {
	for _, item := range items {
		for _, text := range of(item) {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

func namesOf(all []Scheme) []string {
	return distinct(all, func(s Scheme) []string { return []string{s.Name} })
}

func ordersOf(all []Scheme) []string {
	return distinct(all, func(s Scheme) []string { return s.Orders })
}

func pointsOfStencils(o *Options) []string {
	return autoOr(distinct(o.Stencils, func(k StencilKind) []string { return []string{strconv.Itoa(k.Points)} }))
}

func shapesOfStencils(o *Options) []string {
	return autoOr(distinct(o.Stencils, func(k StencilKind) []string { return []string{k.Shape} }))
}

// text returns the text of a scalar, "" for anything else.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// octal is a whole number that YAML 1.1 reads to the base 8, and other readers to the base 10.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]`)

// decimal returns a number that is neither infinite nor NaN.
func decimal(n *yaml.Node) (value float64, ok bool) {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag != "!!float" && tag != "!!int" || tag == "!!int" && octal.MatchString(n.Value) {
		return 0, false
	}
	err := n.Decode(&value)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// integer returns a whole number that fits an int. It may be written as 5, 5.0 or 1e5.
func integer(n *yaml.Node) (value int, ok bool) {
	number, ok := decimal(n)
	switch {
	case !ok || number != math.Trunc(number):
		return 0, false
	case n.ShortTag() == "!!float":
		return int(number), math.Abs(number) <= 1<<53
	}
	err := n.Decode(&value)
	return value, err == nil
}

// each reads the items of a list; false if it is not a list, is empty, or an item is not of the type.
func each[T any](n *yaml.Node, item func(*yaml.Node) (T, bool)) ([]T, bool) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, false
	}
	values := make([]T, len(n.Content))
	for at, c := range n.Content {
		value, ok := item(c)
		if !ok {
			return nil, false
		}
		values[at] = value
	}
	return values, true
}

// number writes a float64 so that it reads back as the same.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
