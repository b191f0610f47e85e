package configs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/halox/halox/configs"
)

const small = "solver: laplace\ngrid: {size: [8, 8]}\n"

// load parses a config that must be good.
func load(t *testing.T, text string, o configs.Options) *configs.Run {
	t.Helper()
	o.Stencils, o.UnitSpacing = stencils, unitSpacing
	run, err := configs.Parse("test.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
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
		"initial": "x < 0.5 ? 1 : 0", "exact": "{", "heat.dt": "1e-6", "heat.diffusivity": "2", "heat.force": "true",
		"stop.iterations": "7", "stop.tolerance": "1e-6", "stop.norm": "l2", "stop.check_every": "3",
		"devices.backend": "host", "devices.count": "2", "devices.ids": "[0, 3]", "decomposition": "[1, 2, 1]",
		"exchange.scheme": "two-stream", "exchange.order": "pairwise", "exchange.path": "peer", "exchange.network": "mpi",
		"output.picture": "a.png", "output.slice": "x=3", "output.field": "a.npy", "output.record": "a.json", "output.history": "true",
	}
	var environ, overrides []string
	seen := map[string]bool{}
	for _, k := range configs.Keys() {
		if seen[k.Variable()] || configs.IsReserved(k.Variable()) {
			t.Errorf("%s is taken", k.Variable())
		}
		seen[k.Variable()] = true
		if value, ok := values[k.Name]; ok {
			environ = append(environ, k.Variable()+"="+value)
			overrides = append(overrides, k.Name+"="+value)
		}
	}
	fromEnvironment := load(t, "", configs.Options{Environ: environ})
	fromOverrides := load(t, "", configs.Options{Set: overrides})
	if diff := cmp.Diff(fromEnvironment, fromOverrides); diff != "" {
		t.Errorf("variables and overrides differ:\n%s", diff)
	}
	want := configs.Face{Kind: configs.Dirichlet, Value: "1"}
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
		{"value of a variable", []string{"HALOX_PRECISION=half"}, nil, `HALOX_PRECISION: precision: "half" is not allowed: float64 or float32`},
		{"variable of a face", []string{"HALOX_BOUNDARY_X_MINUS=open"}, nil,
			`HALOX_BOUNDARY_X_MINUS: boundary.x-: "open" is not allowed: periodic, neumann, or {dirichlet: a number or an expression}`},
		{"variable nearly right", []string{"HALOX_STOP_TOLERENCE=1"}, nil, "HALOX_STOP_TOLERENCE: sets no key: did you mean HALOX_STOP_TOLERANCE?"},
		{"variable of nobody", []string{"HALOX_COLOUR_OF_THINGS=1"}, nil,
			"HALOX_COLOUR_OF_THINGS: sets no key: variables are named after keys, as HALOX_GRID_SIZE after grid.size"},
		{"reserved variables", []string{"HALOX_NVRTC=/lib", "HALOX_CACHE=", "HALOX_TEST_GPUS=4", "halox_x=1", "HALOX"}, nil, ""},
		{"variable without value", []string{"HALOX_STOP_NORM="}, nil, "HALOX_STOP_NORM: stop.norm: has no value: max or l2"},
		{"variable not YAML", []string{"HALOX_GRID_SIZE=[8, 8"}, nil,
			`HALOX_GRID_SIZE: grid.size: "[8, 8" is not YAML: did not find expected ',' or ']'`},
		{"override without value", nil, []string{"stop.norm"}, `--set: "stop.norm" is not allowed: key=value, as in grid.size=[64, 64]`},
		{"override of nothing", nil, []string{"=3"}, `--set: "=3" is not allowed: key=value, as in grid.size=[64, 64]`},
		{"override with an empty value", nil, []string{"exact="}, "--set: exact: has no value: a number or an expression"},
		{"override nearly right", nil, []string{"stop.norms=l2"}, "--set: stop.norms: is not a key: did you mean stop.norm?"},
		{"override of a section", nil, []string{"stop=l2"},
			`--set: stop: "l2" is not allowed: keys with their values, of iterations, tolerance, norm, check_every, sums`},
		{"an axis given twice", nil, []string{"boundary={x: periodic, x: neumann}"}, `--set: boundary.x: "neumann" is given twice`},
		{"override of a section by null", nil, []string{"stop=null"}, "--set: stop: null is not allowed: null resets one key, such as stop.iterations"},
		{"override with a leading zero", nil, []string{"stop.iterations=016"}, "--set: stop.iterations: 016 is not allowed: a whole number from 1"},
		{"override not YAML", nil, []string{"stop={"}, `--set: stop: "{" is not YAML: did not find expected node content`},
		{"both in order", []string{"HALOX_STOP_NORM=l3"}, []string{"precision=1"},
			"HALOX_STOP_NORM: stop.norm: \"l3\" is not allowed: max or l2\n--set: precision: 1 is not allowed: float64 or float32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := configs.Parse("test.yaml", []byte(small), configs.Options{Stencils: stencils, UnitSpacing: unitSpacing, Environ: c.environ, Set: c.sets})
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
		{"not UTF-8", "solver: \xff", "test.yaml: it is not valid UTF-8 text"},
		{"too large", strings.Repeat("#", 2<<20), "test.yaml: it has more than 1048576 bytes, the most that a config may have"},
		{"too deep", strings.Repeat("[", 20000), "exceeded max depth of 10000"},
		{"control characters", "solver: \x01", "test.yaml: control characters are not allowed"},
		{"only spaces", " \n", "test.yaml: solver: is required"},
		{"endless alias", "solver: &a [*a]\n", "test.yaml:1: solver: [*a] is not allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := configs.Parse("test.yaml", []byte(c.text), configs.Options{Stencils: stencils, UnitSpacing: unitSpacing})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, not %s", err, c.want)
			}
		})
	}
}

// Processes share the grid: each has devices.count devices, or as many as the parts leave it.
func TestPartsOfProcesses(t *testing.T) {
	for _, c := range []struct {
		name      string
		processes int
		set       []string
		count     int    // of devices; 0: it is refused
		why       string // in the words of the refusal
	}{
		{"one process", 1, []string{"decomposition=[1, 2, 2]"}, 4, ""},
		{"parts alone", 2, []string{"decomposition=[1, 2, 2]"}, 2, ""},
		{"parts and devices", 2, []string{"decomposition=[1, 2, 2]", "devices.count=2"}, 2, ""},
		{"a device each", 4, []string{"decomposition=[1, 2, 2]", "devices.count=1"}, 1, ""},
		{"more devices than parts", 2, []string{"decomposition=[1, 1, 2]", "devices.count=2"}, 0, "makes 2 subdomains for 4 devices of 2 processes"},
		{"an odd part", 2, []string{"decomposition=[1, 3, 1]"}, 0, "makes 3 subdomains of 2 processes"},
		{"many", 64, []string{"grid.size=[512, 512, 64]", "decomposition=[64, 64, 1]"}, 64, ""},
		{"too many", 2, []string{"grid.size=[512, 512, 64]", "decomposition=[64, 64, 1]"}, 0, "makes more than 2048 subdomains"},
		{"one too many", 1, []string{"grid.size=[512, 512, 64]", "decomposition=[205, 5, 1]"}, 0, "makes more than 1024 subdomains"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := configs.Options{Processes: c.processes, Set: c.set, Stencils: stencils, UnitSpacing: unitSpacing}
			run, err := configs.Parse("test.yaml", []byte("solver: laplace\ngrid: {size: [8, 8, 8]}\n"), o)
			if c.count == 0 {
				if err == nil || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v, want %q", err, c.why)
				}
				return
			}
			if err != nil || int(run.Devices.Count) != c.count {
				t.Errorf("%v, %v", run, err)
			}
		})
	}
}
