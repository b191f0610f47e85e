package configs

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results/output"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Limits of what a config may ask for.
const (
	maxDevices = 1024    // per process
	maxGroup   = 16      // steps between two exchanges
	maxPoints  = 1 << 48 // of a grid

	// Spacings outside these limits have squares, or coefficients made of them, that float64 cannot hold.
	minSpacing, maxSpacing = 1e-100, 1e100
)

// Options are what Load takes besides the file.
type Options struct {
	// Processes is how many share the grid, each with devices.count devices; 0: one.
	Processes int
	// Set holds overrides "key=value", the value in YAML: "grid.size=[64, 64]", "boundary.x-=periodic".
	Set []string
	// Environ holds "NAME=value" as os.Environ does. Only names that begin with HALOX_ matter.
	Environ []string
	// Warn is told of variables HALOX_... that set no key. nil: they are ignored.
	Warn func(Problem)
}

// A key is an entry of the schema: all that is known of one key of a config. Decoding, which goes by the type of the
// field of Run that has the name, defaults, messages, the names of environment variables, the reference page and
// completion follow from it. What is left are checks of how keys go together.
type key struct {
	name  string // the path to it, with dots: "grid.size"
	def   string // the default as it would be written in YAML; "" if it has none
	must  string // what it must be, in words, unless that is one of words or endings or from least to most
	about string // what it means, for the reference

	words       func() []string // all words that it may be
	endings     func() []string // of a file
	least, most int             // of whole numbers; no limit if most is 0
	expression  bool            // it is a number or an expression
	guard       bool            // it switches a check off: no message suggests it
}

// list is words that are always the same.
func list(words ...string) func() []string { return func() []string { return words } }

// constraint says what a value of the key must be, in words.
func (k key) constraint() string {
	switch {
	case k.words != nil:
		return either(k.words())
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
	expressionMust = "a number or an expression"
	axesMust       = "1 to 3 whole numbers of at least 1, as "
)

// keys is the schema, in the order of the reference.
var keys = slices.Concat([]key{
	{name: "solver", words: list(SolverLaplace, SolverHeat),
		about: "The equation: the solution of Laplace's equation, or the heat equation in time."},
	{name: "grid.size", must: axesMust + "[nx], [nx, ny] or [nx, ny, nz]", least: 1,
		about: "Points on each axis, x first. Faces are not counted."},
	{name: "grid.spacing", must: "a number from 1e-100 to 1e100, or one per axis",
		about: "Distance between points, one for all axes or one per axis. Without it each axis is 1 long."},
	{name: "stencil.points", def: Auto,
		words: stencilWords(func(k stencil.Kind) string { return strconv.Itoa(k.Points) }),
		about: "Number of points that a step reads."},
	{name: "stencil.shape", def: Auto, words: stencilWords(func(k stencil.Kind) string { return string(k.Shape) }),
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
		about: "What `stop.norm` names ends the run when it is at most this."},
	{name: "stop.norm", def: "max", words: list("max", "l2", NormResidual),
		about: "What the tolerance bounds: the largest change in a step, its l2 norm, or the largest residual."},
	{name: "stop.check_every", def: "100", least: 1,
		about: "Steps between two checks of the norms. Without a tolerance or `--history`, they are " +
			"checked about once per second, at least 100 steps apart, and at the end."},
	{name: "stop.sums", def: "reproducible", words: list("reproducible", "fast"),
		about: "How sums of norms are computed."},
	{name: "devices.backend", def: Auto, words: func() []string { return autoOr(streams.Backends()) },
		about: "What the run runs on."},
	{name: "devices.count", def: Auto, must: "auto or a whole number from 1 to 1024", least: 1, most: maxDevices,
		about: "Devices per process; auto is all that fit."},
	{name: "devices.ids", must: "different whole numbers from 0 to 1023, as [0, 1]", most: maxDevices - 1,
		about: "The backend's numbers of the devices. Without it the first devices.count are taken."},
	{name: "decomposition", def: Auto, must: "auto, or " + axesMust + "[px, py] or [px, py, pz]", least: 1,
		about: "Subdomains along each axis."},
	{name: "exchange.scheme", def: Auto, words: func() []string { return autoOr(scheme.All()) },
		about: "Scheme of the steps; auto is the fastest of those that are tried."},
	{name: "exchange.order", words: orders,
		about: "Order in which a scheme sends. Without it each scheme takes its own."},
	{name: "exchange.path", def: Auto, words: func() []string { return autoOr(p2p.Paths()) },
		about: "Path of messages between devices."},
	{name: "exchange.network", def: Auto, words: func() []string { return autoOr(mpi.Networks()) },
		about: "Network of messages between processes."},
	{name: "exchange.steps", def: "1", must: "auto or a whole number from 1 to 16", least: 1, most: maxGroup,
		about: "Steps between two exchanges; auto tries some."},
	{name: "output.picture", endings: files(output.Picture), about: "Picture of the result."},
	{name: "output.slice", def: Auto, must: "auto or a plane such as z=16",
		about: "Plane of a picture in 3 dimensions; auto is the middle of z."},
	{name: "output.field", endings: files(output.Field), about: "The field, for NumPy."},
	{name: "output.record", endings: list(".json"), about: "Record of the run: config, times, norms."},
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
		face := key{name: "boundary." + name, words: formsOfFaces, about: "Both faces of " + name + "."}
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

// field returns a pointer to the field of a run that has the key: by the names of its fields in JSON. Faces have none.
func (r *Run) field(k key) any {
	v := reflect.ValueOf(r).Elem()
	for _, part := range strings.Split(k.name, ".") {
		v = reflect.Indirect(v).FieldByNameFunc(func(name string) bool {
			f, _ := reflect.Indirect(v).Type().FieldByName(name)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == part
		})
		if !v.IsValid() {
			panic("configs: type Run has no field for the key " + k.name)
		}
		if v.Type() == reflect.TypeFor[Boundary]() {
			return nil
		}
	}
	return v.Addr().Interface()
}

// invalid is the reason for a value that is not what key.constraint says.
const invalid = "invalid"

// decode sets the field of a run that has the key. It says why it cannot: invalid, or a sentence.
func (k key) decode(run *Run, n *yaml.Node) (why string) {
	ok, into := true, run.field(k)
	defer func() {
		if why != "" && into != nil {
			reflect.ValueOf(into).Elem().SetZero()
		}
	}()
	switch p := into.(type) {
	case *string:
		return k.decodeText(p, n)
	case *int, *Count:
		value, whole := integer(n)
		_, auto := p.(*Count)
		if auto = (auto || k.def == Auto) && text(n) == Auto; auto {
			return ""
		}
		ok = whole && k.inRange(value) && (k.words == nil || slices.Contains(k.words(), strconv.Itoa(value)))
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
		*p, ok = spacings(n, cmp.Or(run.Dims(), 2))
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
		run.Boundary[lastName(k.name)], why = faceOf(n)
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
func (k key) decodeText(to *string, n *yaml.Node) (why string) {
	*to = text(n)
	isText := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
	ok := true
	switch {
	case k.expression:
		*to, why = expressionOf(n)
	case k.endings != nil:
		ok = isText && (*to == "" || slices.Contains(k.endings(), strings.ToLower(filepath.Ext(*to))))
	case k.words != nil:
		ok = slices.Contains(k.words(), *to)
	case k.name == "output.slice":
		_, _, plane := parsePlane(*to)
		ok = plane || *to == Auto
	default:
		ok = isText
	}
	if !ok {
		return invalid
	}
	return why
}

// axes reports whether a list has an item per axis of a grid.
func axes(list []int) bool { return 1 <= len(list) && len(list) <= 3 }

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
func formsOfFaces() []string {
	words := []string{string(solvers.Periodic)}
	for _, kind := range boundary.Kinds() {
		form := string(kind)
		if kind.HasValues() {
			form = fmt.Sprintf("{%s: %s}", form, expressionMust)
		}
		words = append(words, form)
	}
	return words
}

// faceOf reads a boundary condition: a word, or {word: value} of a kind that has values.
func faceOf(n *yaml.Node) (f Face, why string) {
	if n.Kind == yaml.ScalarNode {
		f.Kind = boundary.Kind(n.Value)
		if f.Kind != solvers.Periodic && (f.Kind.HasValues() || !slices.Contains(boundary.Kinds(), f.Kind)) {
			return Face{}, invalid
		}
		return f, ""
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || !boundary.Kind(text(n.Content[0])).HasValues() {
		return f, invalid
	}
	f.Kind = boundary.Kind(n.Content[0].Value)
	if f.Value, why = expressionOf(n.Content[1]); why == invalid {
		why = "must have " + expressionMust + " as its value, in quotes if it holds : or #"
	}
	return f, why
}

// expressionOf reads a number or an expression. Numbers are written anew, since YAML has spellings of its own.
func expressionOf(n *yaml.Node) (src, why string) {
	if value, ok := decimal(n); ok {
		return number(value), ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		return "", invalid
	}
	if _, err := stencil.Parse(n.Value); err != nil {
		return "", fmt.Sprintf("must be an expression: %v", err)
	}
	return n.Value, ""
}

// autoOr returns names after auto, each once.
func autoOr[T ~string](names []T) []string {
	all := []string{Auto}
	for _, name := range names {
		if !slices.Contains(all, string(name)) {
			all = append(all, string(name))
		}
	}
	return all
}

// stencilWords is auto and what all stencils have.
func stencilWords(of func(stencil.Kind) string) func() []string {
	return func() []string {
		var all []string
		for _, k := range slices.Concat(stencil.Kinds(1), stencil.Kinds(2), stencil.Kinds(3)) {
			all = append(all, of(k))
		}
		return autoOr(all)
	}
}

// orders returns the orders of all schemes.
func orders() []string {
	var all []scheme.Order
	for _, name := range scheme.All() {
		all = append(all, name.Needs().Orders...)
	}
	return autoOr(all)[1:]
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
