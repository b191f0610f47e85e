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
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results/output"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Limits of a config.
const (
	maxDevices = 1024    // per process
	maxGroup   = 16      // steps between two exchanges
	maxPoints  = 1 << 48 // points of a grid

	// Spacings outside these limits have squares, or coefficients, that float64 cannot represent.
	minSpacing, maxSpacing = 1e-100, 1e100
)

// Options are additional settings of Load.
type Options struct {
	// Processes is the number of processes that share the grid, each with devices.count devices; 0 means one.
	Processes int
	// Set has overrides "key=value", the value in YAML: "grid.size=[64, 64]", "boundary.x-=periodic".
	// Default: none.
	Set []string
	// Environ has "NAME=value" entries, like os.Environ. Only names that begin with HALOX_ are used. Default:
	// none.
	Environ []string
	// Warn is called for variables HALOX_... that set no key; nil ignores them.
	Warn func(Problem)
}

// A key is an entry of the schema: everything about one key of a config. Decoding (by the type of the field
// of Run with the name), defaults, messages, names of environment variables, the reference page and
// completion follow from it. Checks of combinations of keys are separate.
type key struct {
	name  string // path with dots, such as "grid.size"
	def   string // default in YAML; "" if there is none
	must  string // requirement in words, unless it follows from words, endings, or least and most
	about string // meaning, for the reference

	words       func() []string // all valid words
	endings     func() []string // valid file extensions
	least, most int             // limits of integers; no upper limit if most is 0
	expression  bool            // a number or an expression
	formula     bool            // like expression, but may use what equations may, so that it is read with them
	guard       bool            // disables a check: no message suggests it

	items    []key // keys of each mapping, if the value is a list of mappings
	required bool  // of one of items: it must be set
}

// list is a constant list of words.
func list(words ...string) func() []string { return func() []string { return words } }

// constraint returns the requirement on a value of the key, in words.
func (k key) constraint() string {
	switch {
	case k.words != nil:
		return either(k.words())
	case k.endings != nil:
		return "a file that ends in " + either(k.endings())
	case k.formula || k.name == "initial":
		return formulaMust
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
	formulaMust    = "a number, an expression, or {file: NAME.npy} and perhaps interpolate: linear"
	axesMust       = "1 to 3 whole numbers of at least 1, as "
	namesMust      = "names with "
)

// keys is the schema, in the order of the reference.
var keys = slices.Concat([]key{
	{name: "solver", words: list(SolverLaplace, SolverHeat, SolverEquation),
		about: "The equation: the solution of Laplace's equation, the heat equation in time, or equations as text."},
	{name: "grid.size", must: axesMust + "[nx], [nx, ny] or [nx, ny, nz]", least: 1,
		about: "Points on each axis, x first. Faces are not counted."},
	{name: "grid.spacing", must: "a number from 1e-100 to 1e100, or one per axis",
		about: "Distance between points, one for all axes or one per axis. Without it, each axis has length 1."},
	{name: "grid.start", must: "one number per axis, as [0, 0]",
		about: "Where each axis begins, with solver equation; default 0."},
	{name: "grid.end", must: "one number per axis, as [1, 1]",
		about: "Where each axis ends, with solver equation, in place of grid.spacing: the position of its [face](boundaries.md#coordinates)."},
	{name: "grid.points", def: "nodes", words: list("nodes", Cells),
		about: "Where Dirichlet faces lie: one spacing from the nearest point, or with cells half a spacing, " +
			"as other faces do."},
	{name: "stencil.points", def: Auto,
		words: stencilWords(func(k stencil.Kind) string { return strconv.Itoa(k.Points) }),
		about: "Number of points that a step reads."},
	{name: "stencil.shape", def: Auto, words: stencilWords(func(k stencil.Kind) string { return string(k.Shape) }),
		about: "Shape of the points that a step reads."},
	{name: "precision", def: "float64", words: list("float64", "float32"), about: "Type of the field."},
}, boundaryKeys(), []key{
	{name: "initial", def: "0", expression: true, about: "The field at the start: an expression or a [file](equations.md#files)."},
	{name: "exact", expression: true,
		about: "The exact solution, to compare the result with, or one per field, as {u: sin(x), v: cos(x)}."},
	{name: "unit", must: "a text, or one per field, as {u: K}",
		about: "Unit of the field in pictures, the summary and .vti files, or one per field, as {u: K, v: m/s}."},
	{name: "parameters", must: namesMust + "numbers", about: "Numbers that formulas use by name."},
	{name: "constants", must: namesMust + "expressions",
		about: "Fields that do not change, which formulas use by name: expressions or [files](equations.md#files); " +
			"each may use the ones above it."},
	{name: "let", must: namesMust + "formulas", about: "Formulas that are substituted for their names."},
	{name: "define", must: namesMust + "formulas or {formula, boundary}",
		about: "Formulas that are stored and exchanged, so that operators can be applied to them."},
	{name: "fields", must: namesMust + "{initial, rate, previous, boundary}",
		about: "The fields of solver equation: initial values, their rate or the values one step earlier, and faces."},
	{name: "equations", must: namesMust + "formulas",
		about: "The derivative of each field with respect to time."},
	{name: "accelerations", must: namesMust + "formulas",
		about: "In place of equations: the second derivative of each field with respect to time."},
	{name: "update", must: namesMust + "formulas",
		about: "In place of equations: the value of each field after a step, which may use `previous(u)`."},
	{name: "stages", must: "a list of " + namesMust + "formulas",
		about: "In place of equations: stages of a step, which compute fields from what earlier stages wrote."},
	{name: "time.integrator", def: "euler", words: list("euler", "rk2", "ssprk3", "rk4", "leapfrog"),
		about: "How equations are integrated; accelerations always by leapfrog."},
	{name: "time.dt", def: Auto, must: "auto, a positive number, or {cfl: 0.4, speed: FORMULA}",
		about: "Time between two steps; auto is 0.9 times the largest stable step, where halox can determine it, without " +
			"[reactions](equations.md#time-step). " +
			"With a speed it changes: cfl times the spacing over the [largest speed](equations.md#steps-that-change)."},
	{name: "time.force", def: "false", words: list("true", "false"), guard: true,
		about: "Use time.dt even if it is not stable."},
	{name: "heat.dt", def: Auto, must: "auto or a positive number",
		about: "Time between two steps; auto is the largest that is stable."},
	{name: "heat.diffusivity", def: "1",
		must:  "a positive number, one per axis, an expression of coordinates, or {file: NAME.npy}",
		about: "Diffusivity D of the heat equation. With an expression, diffusion is div(D grad u)."},
	{name: "heat.source", formula: true,
		about: "Term f of du/dt = div(D grad u) + f, a [formula](equations.md#formulas)."},
	{name: "heat.force", def: "false", words: list("true", "false"), guard: true,
		about: "Use heat.dt even if it is not stable."},
	{name: "laplace.source", formula: true,
		about: "f of lap(u) + f = 0, a [formula](equations.md#formulas); without it 0."},
	{name: "measure", must: namesMust + "reductions of formulas, as sum(u)",
		about: "Numbers that are reduced from the fields, at the start, at the end and at each check with a history: " +
			"[sum, mean, max, min or l2](equations.md#measures) of formulas."},
	{name: "stop.iterations", def: "1000", least: 1, about: "Maximum number of steps; with `stop.time` no limit by default."},
	{name: "stop.time", must: "a positive number",
		about: "Time at which a run ends; steps are shortened so that the last one ends at this time."},
	{name: "stop.wall_time", must: "a duration such as 90s, 5m or 2h",
		about: "Time for steps, after which the run ends between two of them and writes its outputs. " +
			"The exit code is 0, and the record has [`stopped: wall time`](exit-codes.md#runs-that-are-not-complete)."},
	{name: "stop.field", must: "the name of a field",
		about: "Field whose norms are computed, for the tolerance, the summary and the record; default all fields."},
	{name: "stop.tolerance", must: "a positive number, or null for none",
		about: "The run ends when the norm that `stop.norm` names is at most this number."},
	{name: "stop.norm", def: "max", words: list("max", "l2", NormResidual),
		about: "What the tolerance limits: the largest change in a step, its l2 norm, or the largest residual."},
	{name: "stop.check_every", def: "100", least: 1,
		about: "Steps between two checks of the norms. Without a tolerance or `--history`, they are " +
			"checked about once per second, at least 100 steps apart, and at the end."},
	{name: "stop.sums", def: "reproducible", words: list("reproducible", "fast"),
		about: "How sums of norms are computed."},
	{name: "devices.backend", def: Auto, words: func() []string { return autoOr(streams.Backends()) },
		about: "Backend of the devices; auto is cuda if there is a GPU, otherwise host (the CPU)."},
	{name: "devices.count", def: Auto, must: "auto or a whole number from 1 to 1024", least: 1, most: maxDevices,
		about: "Devices per process; auto is all that fit."},
	{name: "devices.ids", must: "different whole numbers from 0 to 1023, as [0, 1]", most: maxDevices - 1,
		about: "IDs of the devices in the backend. Default: the first devices.count devices."},
	{name: "decomposition", def: Auto, must: "auto, or " + axesMust + "[px, py] or [px, py, pz]", least: 1,
		about: "Subdomains along each axis."},
	{name: "exchange.scheme", def: Auto, words: func() []string { return autoOr(scheme.All()) },
		about: "Scheme of the steps; auto is the fastest of the schemes that are tried."},
	{name: "exchange.order", words: orders,
		about: "Order of two-stream, left-right by default or pairwise, or of assisted, concurrent by default or serial."},
	{name: "exchange.path", def: Auto, words: func() []string { return autoOr(p2p.Paths()) },
		about: "Path of messages between devices."},
	{name: "exchange.network", def: Auto, words: func() []string { return autoOr(mpi.Networks()) },
		about: "Network of messages between processes."},
	{name: "exchange.steps", def: "1", must: "auto or a whole number from 1 to 16", least: 1, most: maxGroup,
		about: "Steps between two exchanges; auto tries some."},
	{name: "output.picture", endings: files(output.Picture), about: "Picture of the result."},
	{name: "output.slice", def: Auto, must: "auto or a plane such as z=16 or z=0.5",
		about: "Plane of a picture in 3 dimensions: an index, or a coordinate; auto is the middle of z."},
	{name: "output.colors", def: plot.ColorMaps()[0], words: plot.ColorMaps,
		about: "Color map of pictures; blue-red is white at 0."},
	{name: "output.range", must: "two numbers, the smaller one first, as [0, 1]",
		about: "Values of the first and the last color of pictures; without it, those of the field."},
	{name: "output.label", must: "a text, or one per field",
		about: "Name of the values at the color bar, before the unit; without it the field's name."},
	{name: "output.field", endings: files(output.Field), about: "The field, for NumPy (.npy) or ParaView (.vti)."},
	{name: "output.record", endings: list(".json"), about: "Record of the run: config, times, norms."},
	{name: "output.history", def: "false", words: list("true", "false"),
		about: "Keep the norms of every check in the record."},
	{name: "output.probes", items: probeKeys, must: "a list of probes, as [{at: [0.5, 0.5], every: 10}]",
		about: "[Values at points](outputs.md#probes), written during the run."},
	{name: "output.series", items: seriesKeys, must: "a list of series, as [{every: {steps: 500}, format: vti}]",
		about: "[Fields at several times](outputs.md#series), written during the run."},
	{name: "output.statistics.mean", must: fieldsMust,
		about: "Fields whose mean over the samples is accumulated on the devices, see [statistics](outputs.md#statistics)."},
	{name: "output.statistics.variance", must: fieldsMust, about: "Fields whose variance and mean are accumulated."},
	{name: "output.statistics.min", must: fieldsMust, about: "Fields whose smallest values are kept."},
	{name: "output.statistics.max", must: fieldsMust, about: "Fields whose largest values are kept."},
	{name: "output.statistics.every", must: everyMust, about: "When a sample is taken."},
	{name: "output.statistics.from", must: everyMust, about: "First step or time of a sample."},
	{name: "output.statistics.folder", must: "a folder", about: "Folder of the .npy files; default `statistics`."},
	{name: "output.on_error", def: "warn", words: list("warn", OnErrorStop),
		about: "What a run does if an output during the run cannot be written, for example because the disk is full."},
	{name: "checkpoint.folder", must: "the name of a folder",
		about: "Folder of the checkpoints; `checkpoints` if only `checkpoint.every` is set, and none without both."},
	{name: "checkpoint.every.steps", least: 1, about: "Steps between two checkpoints."},
	{name: "checkpoint.every.minutes", must: "a positive number", about: "Minutes between two checkpoints."},
	{name: "checkpoint.keep", def: "2", least: 1, about: "Number of checkpoints to keep; older ones are removed."},
	{name: "checkpoint.compress", def: Auto,
		words: list(string(checkpoint.Auto), string(checkpoint.None), string(checkpoint.Zstd)),
		about: "Compression of values; auto uses zstd for fields that it makes at least a fifth smaller."},
	{name: "checkpoint.grace", def: "30s", must: "a duration such as 90s, 5m or 2h",
		about: "How long the last checkpoint may take after SIGTERM or Ctrl-C."},
	{name: "checkpoint.on_error", def: "warn", words: list("warn", "stop"),
		about: "What a run does if it cannot write a checkpoint: warn and continue, or stop."},
	{name: "faults.restarts", def: "0",
		about: "How many times a run of one process is [started again](../how-to/run-for-days.md#faults) from the " +
			"newest checkpoint after it has lost a device, or was killed."},
})

// files returns the extensions of the output files of a kind: all registered formats.
func files(kind output.Kind) func() []string {
	return func() []string { return output.Extensions(kind) }
}

// boundaryKeys are the keys of axes and faces. An axis sets its faces, see resolveAxes.
func boundaryKeys() (all []key) {
	for axis := range 3 {
		name := "xyz"[axis : axis+1]
		face := key{name: "boundary." + name, words: formsOfFaces,
			about: "Both faces of " + name + ". A value is a number or an expression. With solver equation it applies to " +
				"fields without a boundary, and flux and robin may state a [D](boundaries.md), as {flux: {value: 1, D: 2}}."}
		all = append(all, face)
		for side, end := range []string{"low", "high"} {
			face.name, face.def = "boundary."+faceName(axis, side), "{dirichlet: 0}"
			face.about = fmt.Sprintf("The face at the %s end of %s.", end, name)
			all = append(all, face)
		}
	}
	return all
}

// free reports whether the value is free text, which need not be quoted on its own.
func (k key) free() bool {
	return k.expression || k.formula || k.endings != nil || k.name == "output.slice"
}

// field returns a pointer to the field of a run for the key. Faces have none.
func (r *Run) field(k key) any { return fieldOf(reflect.ValueOf(r), k.name) }

// fieldOf returns a pointer to a field of a struct, by the JSON names on the path to it; nil for a face.
func fieldOf(of reflect.Value, path string) any {
	v := of.Elem()
	for _, part := range strings.Split(path, ".") {
		v = reflect.Indirect(v).FieldByNameFunc(func(name string) bool {
			f, _ := reflect.Indirect(v).Type().FieldByName(name)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == part
		})
		if !v.IsValid() {
			panic("configs: " + of.Type().String() + " has no field for the key " + path)
		}
		if v.Type() == reflect.TypeFor[Boundary]() {
			return nil
		}
	}
	return v.Addr().Interface()
}

// invalid is the reason for a value that violates key.constraint.
const invalid = "invalid"

// decode sets the field of a run for the key, or returns why it cannot: invalid, or a sentence.
func (k key) decode(run *Run, n *yaml.Node) (why string) {
	into := run.field(k)
	if into == nil {
		run.Boundary[lastName(k.name)], why = faceOf(n)
		return why
	}
	return k.decodeTo(run, into, n)
}

// decodeTo is decode for a pointer to the field.
func (k key) decodeTo(run *Run, into any, n *yaml.Node) (why string) {
	ok := true
	defer func() {
		if why != "" {
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
	case *Coefficient:
		ok = p.decode(n)
	case *PerField:
		return k.decodePerField(run, p, n)
	case *TimeStep:
		ok = p.decode(n)
	case *Files:
		return k.decodeFiles(p, n)
	case *map[string]float64, *Definitions, *Fields: // see checker.equation
	case *[]float64:
		if *p, ok = each(n, decimal); k.name == "grid.spacing" {
			*p, ok = spacings(n, cmp.Or(run.Dims(), 2))
		}
	case *[]string:
		*p, ok = each(n, textItem)
	case *Every:
		ok = p.decode(n)
	case *Plane:
		*p, ok = axisValues(n, decimal)
	case *Ranges:
		*p, ok = axisValues(n, func(n *yaml.Node) ([]float64, bool) {
			ends, ok := each(n, decimal)
			return ends, ok && len(ends) == 2
		})
	case **Line:
		*p = &Line{}
		ok = (*p).decode(n)
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
	}
	if !ok {
		why = invalid
	}
	return why
}

func (k key) inRange(value int) bool { return value >= k.least && (k.most == 0 || value <= k.most) }

// inList reads an item of a list of integers.
func (k key) inList(n *yaml.Node) (int, bool) {
	value, ok := integer(n)
	return value, ok && k.inRange(value)
}

// decodeFiles reads the name of a file, or one per field.
func (k key) decodeFiles(to *Files, n *yaml.Node) (why string) {
	if n.Kind != yaml.MappingNode {
		path := ""
		if why = k.decodeText(&path, n); path != "" {
			*to = Files{{Path: path}}
		}
		return why
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f := File{Field: n.Content[i].Value}
		if why = k.decodeText(&f.Path, n.Content[i+1]); why != "" {
			return why
		}
		*to = append(*to, f)
	}
	return ""
}

// decodePerField reads a text, or one per field.
func (k key) decodePerField(run *Run, to *PerField, n *yaml.Node) (why string) {
	one := func(name string, n *yaml.Node) {
		text, reason := "", ""
		if k.expression && run.Solver == SolverEquation { // may use names of the equation
			if text, _ = formulaText(n); text == "" || n.Kind == yaml.MappingNode {
				reason = invalid
			}
		} else {
			reason = k.decodeText(&text, n)
		}
		*to, why = append(*to, solvers.Definition{Name: name, Formula: text}), cmp.Or(why, reason)
	}
	if n.Kind != yaml.MappingNode {
		one("", n)
	}
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		one(n.Content[i].Value, n.Content[i+1])
	}
	return why
}

// decodeText reads an expression, a file name, a plane or a word.
func (k key) decodeText(to *string, n *yaml.Node) (why string) {
	*to = text(n)
	isText := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
	ok := true
	switch {
	case k.name == "initial" && (n.Kind == yaml.MappingNode || readsFile.MatchString(*to)):
		*to, ok = formulaText(n)
	case k.expression:
		*to, why = expressionOf(n)
	case k.formula:
		*to, ok = formulaText(n)
	case k.endings != nil:
		ok = isText && (*to == "" || slices.Contains(k.endings(), strings.ToLower(filepath.Ext(*to))))
	case k.words != nil:
		ok = slices.Contains(k.words(), *to)
	case k.name == "output.slice":
		_, _, _, plane := parsePlane(*to)
		ok = plane || *to == Auto
	case k.name == "stop.wall_time", k.name == "checkpoint.grace":
		limit, err := time.ParseDuration(*to)
		ok = isText && err == nil && limit > 0
	default:
		ok = isText && *to != ""
	}
	if !ok {
		return invalid
	}
	return why
}

// axes reports whether a list can have one item per axis of a grid.
func axes(list []int) bool { return 1 <= len(list) && len(list) <= 3 }

func repeats(list []int) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(list)))) < len(list)
}

// tooLarge returns the reason if a grid has too many points, otherwise "".
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

// spacings reads one number for all axes, or one per axis.
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

// formsOfFaces lists the forms of a face.
func formsOfFaces() []string {
	words := []string{string(solvers.Periodic)}
	for _, kind := range boundary.Kinds() {
		if kind.Values() != boundary.Required {
			words = append(words, string(kind))
		}
		if kind == boundary.Robin {
			words = append(words, fmt.Sprintf("{%s: {h: value, ambient: value}}", kind))
		} else if kind.Values() != boundary.None {
			words = append(words, fmt.Sprintf("{%s: value}", kind))
		}
	}
	return words
}

// faceOf reads a boundary condition: a word, or {word: value} for a kind that has values.
func faceOf(n *yaml.Node) (f Face, why string) {
	f, why = faceNode(n, formulaText)
	for _, src := range []string{f.Value, f.Transfer} {
		if why == "" && src != "" && !readsFile.MatchString(src) {
			if _, err := stencil.Parse(src); err != nil {
				why = fmt.Sprintf("must be an expression: %v", err)
			}
		}
	}
	return f, why
}

// faceNode is faceOf with a value that another function reads.
func faceNode(n *yaml.Node, value func(*yaml.Node) (string, bool)) (f Face, why string) {
	if n.Kind == yaml.ScalarNode {
		f.Kind = boundary.Kind(n.Value)
		if f.Kind != solvers.Periodic &&
			(f.Kind.Values() == boundary.Required || !slices.Contains(boundary.Kinds(), f.Kind)) {
			return Face{}, invalid
		}
		return f, ""
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return f, invalid
	}
	from := n.Content[1]
	ok := false
	f.Kind = boundary.Kind(text(n.Content[0]))
	members := map[string]*yaml.Node{}
	for i := 0; from.Kind == yaml.MappingNode && i < len(from.Content); i += 2 {
		members[text(from.Content[i])] = from.Content[i+1]
	}
	if d := members["D"]; d != nil && (f.Kind == boundary.Flux || f.Kind == boundary.Robin) {
		delete(members, "D")
		value, number := decimal(d)
		if f.Diffusivity, ok = formulaText(d); !ok || number && value <= 0 {
			return f, "must have a positive number or an expression as its D"
		}
	}
	if f.Kind == boundary.Flux && members["value"] != nil {
		if from = members["value"]; len(members) > 1 {
			return f, invalid
		}
	}
	if f.Kind == boundary.Robin {
		h, ambient := members["h"], members["ambient"]
		if len(members) != 2 || h == nil || ambient == nil {
			return f, "must have h and ambient, as {robin: {h: 2, ambient: 0}}"
		}
		if f.Transfer, ok = value(h); !ok {
			return f, "must have " + expressionMust + " as its h"
		}
		from = ambient
	} else if f.Kind.Values() == boundary.None || !slices.Contains(boundary.Kinds(), f.Kind) {
		return f, invalid
	}
	if f.Value, ok = value(from); !ok {
		why = "must have " + expressionMust + " as its value, in quotes if it contains : or #"
	}
	return f, why
}

// expressionOf reads a number or an expression. It rewrites numbers, since YAML has other spellings.
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

// autoOr returns auto and the distinct names.
func autoOr[T ~string](names []T) []string {
	all := []string{Auto}
	for _, name := range names {
		if !slices.Contains(all, string(name)) {
			all = append(all, string(name))
		}
	}
	return all
}

// stencilWords returns auto and the words of all stencils.
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
	return autoOr(scheme.Orders())[1:]
}

// text returns the text of a scalar, "" for anything else.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// octal is an integer that YAML 1.1 reads in base 8, and other readers in base 10.
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

// integer returns an integer that fits in an int. It may be written as 5, 5.0 or 1e5.
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

// each reads the items of a list; false if it is not a list, is empty, or an item has the wrong type.
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

// number formats a float64 so that it reads back as the same value.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
