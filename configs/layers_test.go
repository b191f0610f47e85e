package configs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/test"
)

const small = "solver: laplace\ngrid: {size: [8, 8]}\n"

// load parses a valid config.
func load(t *testing.T, text string, o configs.Options) *configs.Run {
	t.Helper()
	run := test.Must(configs.Parse("test.yaml", []byte(text), o))(t)
	return run
}

func TestPrecedence(t *testing.T) {
	const file = small + "stop: {iterations: 2}\n"
	environ := []string{"HALOX_STOP_ITERATIONS=3", "PATH=/bin"}
	for _, c := range []struct {
		name string
		text string
		o    configs.Options
		want int
	}{
		{"default", small, configs.Options{}, 1000},
		{"file over default", file, configs.Options{}, 2},
		{"environment over file", file, configs.Options{Environ: environ}, 3},
		{"override over environment", file, configs.Options{Environ: environ, Set: []string{"stop.iterations=4"}}, 4},
		{"last override", file, configs.Options{Set: []string{"stop.iterations=4", "stop.iterations=5"}}, 5},
		{"override of a section", file, configs.Options{Set: []string{"stop={iterations: 6, norm: l2}"}}, 6},
		{"null is the default", file, configs.Options{Set: []string{"stop.iterations=null"}}, 1000},
		{"null resets a section", file, configs.Options{Set: []string{"stop.iterations=5", "stop=null", "stop.norm=l2"}}, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := load(t, c.text, c.o).Stop.Iterations; got != c.want {
				t.Errorf("%d iterations, not %d", got, c.want)
			}
		})
	}
}

func TestEveryKeyHasAVariable(t *testing.T) {
	values := map[string]string{
		"solver": "heat", "grid.size": "[64, 64, 64]", "grid.spacing": "1e-2", "precision": "float32",
		"boundary.x": "periodic", "boundary.y-": "neumann", "boundary.y+": "{dirichlet: 1}", "boundary.z": "neumann",
		"initial": "x < 0.5 ? 1 : 0", "exact": "1 < 2 ? 3 : 4", "heat.dt": "1e-6", "heat.diffusivity": "2", "heat.force": "true",
		"stop.iterations": "7", "stop.tolerance": "1e-6", "stop.norm": "l2", "stop.check_every": "3",
		"devices.backend": "host", "devices.count": "2", "devices.ids": "[0, 3]", "decomposition": "[1, 2, 1]",
		"exchange.scheme": "two-stream", "exchange.order": "pairwise", "exchange.path": "peer", "exchange.network": "mpi",
		"output.picture": "a.png", "output.slice": "x=3", "output.field": "a.npy", "output.record": "a.json", "output.history": "true",
	}
	var environ, overrides []string
	seen := map[string]bool{}
	for _, k := range configs.Keys() {
		variable := configs.Variable(k)
		if seen[variable] || configs.IsReserved(variable) {
			t.Errorf("%s is taken", variable)
		}
		seen[variable] = true
		if value, ok := values[k]; ok {
			environ = append(environ, variable+"="+value)
			overrides = append(overrides, k+"="+value)
		}
	}
	fromEnvironment := load(t, "", configs.Options{Environ: environ})
	fromOverrides := load(t, "", configs.Options{Set: overrides})
	if diff := cmp.Diff(fromEnvironment, fromOverrides); diff != "" {
		t.Errorf("variables and overrides differ:\n%s", diff)
	}
	want := configs.Face{Kind: boundary.Dirichlet, Value: "1"}
	if got := fromEnvironment.Boundary.Face(1, 1); got != want || fromEnvironment.Initial != values["initial"] {
		t.Errorf("got %+v", fromEnvironment)
	}
}

func TestFacesOfSeveralLayers(t *testing.T) {
	for _, c := range []struct{ name, file, set, low, high string }{
		{"axis", "{x: neumann}", "", "neumann", "neumann"},
		{"face over axis", "{x: neumann, x+: {dirichlet: 2}}", "", "neumann", "dirichlet"},
		{"face over axis below", "{x: neumann}", "boundary.x-={dirichlet: 2}", "dirichlet", "neumann"},
		{"axis over faces below", "{x-: neumann, x+: {dirichlet: 2}}", "boundary.x=periodic", "periodic", "periodic"},
		{"whole section", "{x: periodic}", "boundary={x-: neumann, x+: {dirichlet: 0}}", "neumann", "dirichlet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := configs.Options{}
			if c.set != "" {
				o.Set = []string{c.set}
			}
			b := load(t, small+"boundary: "+c.file, o).Boundary
			if got := string(b.Face(0, 0).Kind) + " " + string(b.Face(0, 1).Kind); got != c.low+" "+c.high {
				t.Errorf("got %s, not %s %s", got, c.low, c.high)
			}
		})
	}
}

func TestMessagesOfEnvironmentAndOverrides(t *testing.T) {
	for _, c := range []struct {
		name          string
		environ, sets []string
		want          string
	}{
		{"value of a variable", []string{"HALOX_PRECISION=half"}, nil, `HALOX_PRECISION: precision: must be float64 or float32, got "half"`},
		{"variable of a face", []string{"HALOX_BOUNDARY_X_MINUS=open"}, nil,
			`HALOX_BOUNDARY_X_MINUS: boundary.x-: must be periodic, {dirichlet: value}, {flux: value}, neumann, {neumann: value}, outflow or {robin: {h: value, ambient: value}}, got "open"`},
		{"variable nearly right", []string{"HALOX_STOP_TOLERENCE=1"}, nil, "HALOX_STOP_TOLERENCE: sets no key, did you mean HALOX_STOP_TOLERANCE?"},
		{"reserved variables", []string{"HALOX_NVRTC=/lib", "HALOX_CACHE=", "HALOX_TEST_GPUS=4", "halox_x=1", "HALOX"}, nil, ""},
		{"variable without value", []string{"HALOX_STOP_NORM="}, nil, "HALOX_STOP_NORM: stop.norm: must have a value: max, l2 or residual"},
		{"variable not YAML", []string{"HALOX_GRID_SIZE=[8, 8"}, nil,
			`HALOX_GRID_SIZE: grid.size: not YAML: did not find expected ',' or ']', got "[8, 8"`},
		{"override without value", nil, []string{"stop.norm"}, `--set: must be key=value, such as grid.size=[64, 64], got "stop.norm"`},
		{"override of nothing", nil, []string{"=3"}, `--set: must be key=value, such as grid.size=[64, 64], got "=3"`},
		{"override with an empty value", nil, []string{"exact="}, "--set: exact: must have a value: a number or an expression"},
		{"override nearly right", nil, []string{"stop.norms=l2"}, "--set: stop.norms: unknown key, did you mean stop.norm?"},
		{"override of a section", nil, []string{"stop=l2"},
			`--set: stop: must have keys with values: iterations, time, wall_time, field, tolerance, norm, check_every, sums, got "l2"`},
		{"an axis given twice", nil, []string{"boundary={x: periodic, x: neumann}"}, `--set: boundary.x: must be given once`},
		{"a section that must be set", nil, []string{"grid=null"}, "test.yaml: grid.size: must be set: 1 to 3 whole numbers of at least 1, as [nx], [nx, ny] or [nx, ny, nz]"},
		{"override with a leading zero", nil, []string{"stop.iterations=016"}, "--set: stop.iterations: must be a whole number of at least 1, got 016"},
		{"override not YAML", nil, []string{"stop={"}, `--set: stop: not YAML: did not find expected node content, got "{"`},
		{"both in order", []string{"HALOX_STOP_NORM=l3"}, []string{"precision=1"},
			"HALOX_STOP_NORM: stop.norm: must be max, l2 or residual, got \"l3\"\n--set: precision: must be float64 or float32, got 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := configs.Parse("test.yaml", []byte(small), configs.Options{Environ: c.environ, Set: c.sets})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got\n%s\nnot\n%s", got, c.want)
			}
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"not UTF-8", "solver: \xff", "test.yaml: must be UTF-8 text"},
		{"too large", strings.Repeat("#", 2<<20), "test.yaml: must have at most 1048576 bytes"},
		{"many keys", "solver: laplace\n" + manyKeys(20000), "test.yaml:10001: must have at most 10000 keys and items"},
		{"many items", "a: [" + strings.Repeat("1, ", 300000) + "]", "test.yaml:1: must have at most 10000 keys and items"},
		{"many levels", "a: " + strings.Repeat("[", 33) + strings.Repeat("]", 33), "test.yaml:1: must have at most 32 levels"},
		{"many problems", manyKeys(30), "test.yaml: has 12 more problems"},
		{"too deep", strings.Repeat("[", 20000), "exceeded max depth of 10000"},
		{"control characters", "solver: \x01", "test.yaml: not YAML: control characters are not allowed"},
		{"only spaces", " \n", "test.yaml: solver: must be set"},
		{"endless alias", "solver: &a [*a]\n", "test.yaml:1: solver: must be laplace, heat or equation, got [*a]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := configs.Parse("test.yaml", []byte(c.text), configs.Options{})
			test.Says(t, err, c.want)
		})
	}
}

// Processes share the grid: each has devices.count devices, or as many as the parts leave it.
func TestPartsOfProcesses(t *testing.T) {
	for _, c := range []struct {
		name      string
		processes int
		set       []string
		count     int    // of devices; 0: an error
		why       string // part of the error
	}{
		{"one process", 1, []string{"decomposition=[1, 2, 2]"}, 4, ""},
		{"only parts", 2, []string{"decomposition=[1, 2, 2]"}, 2, ""},
		{"parts and devices", 2, []string{"decomposition=[1, 2, 2]", "devices.count=2"}, 2, ""},
		{"one device each", 4, []string{"decomposition=[1, 2, 2]", "devices.count=1"}, 1, ""},
		{"more devices than parts", 2, []string{"decomposition=[1, 1, 2]", "devices.count=2"}, 0, "must make as many subdomains as there are devices of 2 processes, 4 instead of 2"},
		{"an odd part", 2, []string{"decomposition=[1, 3, 1]"}, 0, "must make the same number of subdomains for each of 2 processes, but makes 3"},
		{"many", 64, []string{"grid.size=[512, 512, 64]", "decomposition=[64, 64, 1]"}, 64, ""},
		{"too many", 2, []string{"grid.size=[512, 512, 64]", "decomposition=[64, 64, 1]"}, 0, "must make at most 2048 subdomains"},
		{"one too many", 1, []string{"grid.size=[512, 512, 64]", "decomposition=[205, 5, 1]"}, 0, "must make at most 1024 subdomains"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := configs.Options{Processes: c.processes, Set: c.set}
			run, err := configs.Parse("test.yaml", []byte("solver: laplace\ngrid: {size: [8, 8, 8]}\n"), o)
			if c.count == 0 {
				test.Says(t, err, c.why)
				return
			}
			if err != nil || int(run.Devices.Count) != c.count {
				t.Errorf("%v, %v", run, err)
			}
		})
	}
}

// manyKeys returns n unknown keys.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "unknown%d: 1\n", i)
	}
	return b.String()
}

// TOML and YAML have the same keys, types and messages.
func TestTOMLIsReadAsYAML(t *testing.T) {
	const grid = "[grid]\nsize = [8, 8]\n"
	for _, c := range []struct{ name, toml, yaml string }{
		{"byte order mark", "\ufeffsolver = 'laplace'\n" + grid, "\ufeffsolver: laplace\n\ngrid: {size: [8, 8]}"},
		{"case", "Solver = 'heat'\n" + grid, "Solver: heat\n\ngrid: {size: [8, 8]}"},
		{"keys that differ in case", "solver='heat'\nstop = {iterations = 4}\nStop = {iterations = 9}\nSTOP = 3\n" + grid,
			"solver: heat\nstop: {iterations: 4}\nStop: {iterations: 9}\nSTOP: 3\n\ngrid: {size: [8, 8]}"},
		{"empty section", "solver='heat'\n" + grid + "[grib]", "solver: heat\ngrid:\n {size: [8, 8]}\ngrib: {}"},
		{"whole numbers", "solver='heat'\nstop.iterations = 1e3\ngrid.size = [8.0, 8]\nexchange.steps = 0x4",
			"solver: heat\nstop.iterations: 1e3\ngrid.size: [8.0, 8]\nexchange.steps: 0x4"},
		{"types", "solver='heat'\nprecision = 32\ninitial = true\nheat.dt = inf\nheat.force = 1\nexact = nan\noutput.field = 3",
			"solver: heat\nprecision: 32\ninitial: true\nheat.dt: .inf\nheat.force: 1\nexact: .nan\noutput.field: 3"},
		{"nested", "solver='heat'\n[boundary.x]\ndirichlet = 'x'\n[boundary]\ny-.dirichlet = 2\n[[stop]]\nnorm='l2'",
			"solver: heat\nboundary.x: {dirichlet: x}\n\n\nboundary.y-: {dirichlet: 2}\nstop: [{norm: l2}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fromTOML, err1 := configs.Parse("c.toml", []byte(c.toml), configs.Options{})
			fromYAML, err2 := configs.Parse("c.yaml", []byte(c.yaml), configs.Options{})
			if diff := cmp.Diff(fromYAML, fromTOML); diff != "" {
				t.Errorf("TOML differs from YAML:\n%s", diff)
			}
			if strings.ReplaceAll(fmt.Sprint(err1), "c.toml", "c.yaml") != fmt.Sprint(err2) {
				t.Errorf("of TOML\n%v\nof YAML\n%v", err1, err2)
			}
		})
	}
	deep := strings.Repeat("a.", 3000) + "a"
	for text, says := range map[string]string{ // toml.Unmarshal takes minutes for some of these
		"solver = 'heat'\nsolver = 'heat'": "c.toml:2: not TOML: key solver is already defined",
		"[grid]\nsize = [8, 8\n":           "c.toml:2: not TOML: ",
		"[stop]\n[stop]":                   "c.toml:2: not TOML: table stop already exists",
		deep + " = 1":                      "c.toml:1: must have at most 32 levels",
		"\n[" + deep + "]\nb = 1":          "c.toml:2: must have at most 32 levels",
		"a = " + strings.Repeat("{a = ", 3000) + "1" + strings.Repeat("}", 3000): "c.toml:1: must have at most 32 levels",
		"a = " + strings.Repeat("[", 500000):                                     "c.toml:1: not TOML: ",
		strings.ReplaceAll(manyKeys(50000), ":", " ="):                           "c.toml:10001: must have at most 10000 keys",
		"a = {" + strings.Repeat("b.c = 1, ", 5000) + "d = 1}":                   "c.toml:1: must have at most 10000 keys",
	} {
		if _, err := configs.Parse("c.toml", []byte(text), configs.Options{}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q gave %v", text, err)
		}
	}
}

// Modules and Kubernetes set other variables HALOX_....
func TestForeignVariables(t *testing.T) {
	var warned []string
	o := configs.Options{
		Environ: []string{"HALOX_SERVICE_HOST=10.0.0.3", "HALOX_ROOT=/opt", "HALOX_CUDA=", "HALOX_STOP_ITERATIONS=1e1"},
	}
	o.Warn = func(p configs.Problem) { warned = append(warned, p.Error()) }
	want := []string{"HALOX_ROOT: sets no key, and is ignored", "HALOX_SERVICE_HOST: sets no key, and is ignored"}
	if run := load(t, small, o); run.Stop.Iterations != 10 || !slices.Equal(warned, want) {
		t.Errorf("%d iterations, warned of %q", run.Stop.Iterations, warned)
	}
}

// No message suggests a key that disables a check.
func TestNoHintDisablesCheck(t *testing.T) {
	for _, key := range []string{"heat.source", "heat.forc", "force"} {
		o := configs.Options{Set: []string{key + "=1"}}
		if _, err := configs.Parse("c.yaml", []byte(small), o); err == nil ||
			strings.Contains(err.Error(), "heat.force") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// --set takes entries of keys with names, over those of the file.
func TestEntriesThatAreSet(t *testing.T) {
	const text = `solver: equation
grid: {size: [8, 8]}
parameters: {D: 1, F: 2}
fields: {u: {initial: x}, v: {}}
equations: {u: D*lap(u), v: D*lap(v)}
output: {field: {u: u.npy}}
`
	for _, c := range []struct {
		set  []string
		says string // "": it is a run, with these
		want func(r *configs.Run) bool
	}{
		{[]string{"output.field.v=v.npy", "parameters.D=3"}, "", func(r *configs.Run) bool {
			return len(r.Output.Field) == 2 && r.Output.Field[0].Path == "u.npy" && r.Parameters["D"] == 3 && r.Parameters["F"] == 2
		}},
		{[]string{"output.picture.u=u.png"}, "", func(r *configs.Run) bool { return r.Output.Picture[0].Path == "u.png" }},
		{[]string{"output.field.v=v.npy", "output.field={u: w.npy}"}, "", func(r *configs.Run) bool {
			return len(r.Output.Field) == 1 && r.Output.Field[0].Path == "w.npy"
		}},
		{[]string{"equations.u=x < 0.5 ? lap(u) : 2*lap(u)", "time.dt=1e-4", "fields.v.initial=y", "fields.u.boundary={x: outflow}",
			"fields.v.boundary.x=outflow"}, "", func(r *configs.Run) bool {
			return r.Fields[0].Initial == "x" && r.Fields[1].Initial == "y" && r.Fields[1].Boundary["x-"].Kind == "outflow"
		}},
		{[]string{"equations.u=D*lap(w)"}, `--set: equations.u: column 7: unknown name "w"`, nil},
		{[]string{"parameters.D=a"}, "--set: parameters.D: must be a finite number", nil},
		{[]string{"output.field.w=w.npy"}, "--set: output.field.w: must name fields, which are u, v", nil},
		{[]string{"outputs.field.u=w.npy"}, "--set: outputs.field.u: unknown key", nil},
	} {
		run, err := configs.Parse("c.yaml", []byte(text), configs.Options{Set: c.set})
		if c.says != "" {
			test.Says(t, err, c.says)
		} else if err != nil || !c.want(run) {
			t.Errorf("%v: %v, %+v", c.set, err, run)
		}
	}
}
