package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/field"
	"github.com/halox/halox/solvers"
)

// Variables of a process that is to be halox.
const (
	mainVariable      = "HALOX_TEST_MAIN"
	listeningVariable = "HALOX_TEST_LISTENING" // the file that it makes once it listens
	atVariable        = "HALOX_TEST_AT"        // and is in this function
)

// TestMain lets the test program be halox itself, for tests that need a
// process of its own, or several.
func TestMain(m *testing.M) {
	dieAtMoment()
	if testmpi.IsProgram() {
		testmpi.Main(m, map[string]func() error{"halox": launchedHalox})
	}
	if os.Getenv(mainVariable) != "" {
		spoil()
		if file := os.Getenv(listeningVariable); file != "" {
			go func() {
				awaitIn(os.Getenv(atVariable))
				_ = os.WriteFile(file, nil, 0o644) // without the file the test reports a timeout
			}()
		}
		main()
		return
	}
	test.CatchSignals()
	os.Exit(m.Run())
}

// awaitIn waits until this process catches signals and is in a function. This is not visible from outside: Go catches all signals
// before main does.
func awaitIn(function string) {
	stacks := make([]byte, 1<<20)
	for {
		now := string(stacks[:runtime.Stack(stacks, true)])
		if strings.Contains(now, "os/signal.loop(") && strings.Contains(now, function) &&
			!strings.Contains(now, "interrupt.Catch(") && !strings.Contains(now, ".DryRun(") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// cli runs the command line in this process. Goroutines of a run may print warnings.
func cli(args ...string) (code int, stdout, stderr string) {
	var out, errs test.Output
	code = execute(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// write makes a file in a folder of its own and returns its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	test.Check(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

const small = `
solver: heat
grid: {size: [11, 8, 9]}
initial: sin(pi*x)*sin(pi*y)*sin(pi*z)
exact: exp(-3*pi^2*t)*sin(pi*x)*sin(pi*y)*sin(pi*z)
stop: {iterations: 40, check_every: 10}
devices: {backend: host, count: 2}
exchange: {scheme: assisted, path: staged}
`

// run runs a config with --record and returns the record, as JSON and as read.
func run(t *testing.T, config string, args ...string) (map[string]any, *results.Record) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out", "record.json")
	code, _, stderr := cli(append([]string{"run", write(t, "c.yaml", config), "-q", "--record", file}, args...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	text := test.Must(os.ReadFile(file))(t)
	var keys map[string]any
	test.Check(t, json.Unmarshal(text, &keys))
	r := test.Must(results.Read(file))(t)
	return keys, r
}

func TestRecordOfARun(t *testing.T) {
	keys, r := run(t, small, "--history")
	ran, _ := keys["run"].(map[string]any)
	for _, tc := range []struct {
		in   map[string]any
		keys []string
	}{
		{keys, []string{"schema", "kind", "halox", "command", "started", "host", "devices", "settings", "rows"}},
		{ran, []string{"scheme", "path", "decomposition", "subdomains", "iterations", "stopped", "max_change", "l2_change", "l2_norm",
			"max_norm", "error", "setup_seconds", "loop_seconds", "updates_per_second", "bytes_exchanged", "time", "dt"}},
	} {
		for _, key := range tc.keys {
			if _, ok := tc.in[key]; !ok {
				t.Errorf("the record has no %s", key)
			}
		}
	}
	var at []int
	for _, h := range r.Run.History {
		at = append(at, h.Iteration)
		if h.MaxChange == nil || h.L2Norm == nil {
			t.Errorf("check %+v", h)
		}
	}
	if !slices.Equal(at, []int{10, 20, 30, 40}) {
		t.Errorf("checks at %v", at)
	}
	if len(r.Rows) != 1 || r.Rows[0].Text("grid") != "11 x 8 x 9" || r.Rows[0].Text("scheme") != "assisted" || r.Rows[0].Median(results.Step) <= 0 {
		t.Errorf("rows %+v", r.Rows)
	}
	if len(r.Command) < 4 || r.Command[0] != "run" || r.Kind != results.KindRun || r.Interrupted {
		t.Errorf("%s of %q", r.Kind, r.Command)
	}
	if r.Run.Scheme != "assisted" || r.Run.Path != "staged" || r.Run.Stopped != results.StopIterations || r.Run.Iterations != 40 {
		t.Errorf("scheme %s, path %s, stopped by %s at %d", r.Run.Scheme, r.Run.Path, r.Run.Stopped, r.Run.Iterations)
	}
	if len(r.Devices) != 2 || r.Devices[0].Backend != "host" || len(r.Devices[0].Links) != 1 || r.Devices[0].Links[0].Path != "staged" {
		t.Errorf("devices %+v", r.Devices)
	}
	points := 0
	for _, s := range r.Run.Subdomains {
		points += (s.Hi[0] - s.Lo[0]) * (s.Hi[1] - s.Lo[1]) * (s.Hi[2] - s.Lo[2])
	}
	if points != 11*8*9 {
		t.Errorf("subdomains %+v", r.Run.Subdomains)
	}
	if want := int64(40 * 2 * 11 * 9 * 8); r.Run.BytesExchanged != want {
		t.Errorf("%d bytes exchanged, want %d", r.Run.BytesExchanged, want)
	}
	if *r.Run.Error.Max > 0.02 || *r.Run.Error.Max <= 0 || *r.Run.Error.L2 > *r.Run.Error.Max {
		t.Errorf("errors %v, %v", *r.Run.Error.Max, *r.Run.Error.L2)
	}
	sum := 0.0
	for _, n := range []float64{12, 9, 10} {
		sum += n * n
	}
	if want := 1 / (2 * sum); math.Abs(*r.Run.DT-want) > 1e-15 || math.Abs(*r.Run.Time-40*want) > 1e-12 {
		t.Errorf("dt %v, time %v", *r.Run.DT, *r.Run.Time)
	}
}

// The same problem in any form of run gives the same record of its solution.
func TestOverridesAndPrecedence(t *testing.T) {
	t.Setenv("HALOX_STOP_ITERATIONS", "7")
	if _, r := run(t, small); r.Run.Iterations != 7 || len(r.Run.History) > 0 {
		t.Errorf("the variable was not used: %d iterations, or there is a history: %+v", r.Run.Iterations, r.Run.History)
	}
	if _, r := run(t, small, "--set", "stop.iterations=5", "--set", "devices.count=1"); r.Run.Iterations != 5 || len(r.Devices) != 1 {
		t.Errorf("--set was not used: %d iterations, %d devices", r.Run.Iterations, len(r.Devices))
	}
}

func TestSamplesRun(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	for _, name := range testdevices.Again(1, []string{"laplace2d", "laplace3d", "heat2d", "heat3d"}) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, name+".yaml")
			if code, out, errs := cli("config", "new", name, file); code != 0 || !strings.Contains(out, file) {
				t.Fatalf("exit %d: %s", code, errs)
			}
			if code, out, errs := cli("config", "check", file); code != 0 || !strings.Contains(out, "ok") {
				t.Fatalf("exit %d: %s", code, errs)
			}
			picture, array := filepath.Join(dir, "p.png"), filepath.Join(dir, "f.npy")
			code, out, errs := cli("run", file, "--set", "devices.backend=host", "--set", "stop.iterations=20",
				"--set", "output.picture="+picture, "--set", "output.field="+array)
			if code != 0 || !strings.Contains(out, picture) {
				t.Fatalf("exit %d: %s%s", code, out, errs)
			}
			shape, values, err := field.Read(array)
			if err != nil || len(values) == 0 || len(shape) != int(name[len(name)-2]-'0') {
				t.Errorf("field of shape %v: %v", shape, err)
			}
			if info, err := os.Stat(picture); err != nil || info.Size() < 1000 {
				t.Errorf("picture: %v, %v", info, err)
			}
			if code, _, _ := cli("config", "new", name, file); code == 0 {
				t.Error("a config was written over")
			}
		})
	}
}

// The samples of rules give the checksums that examples/grayscott -size 64 -steps 100 and examples/wave -size 24
// -steps 50 print.
func TestSamplesGiveTheBitsOfExamples(t *testing.T) {
	for _, c := range []struct {
		name, size, steps string
		fields            []string
		sum               uint32
	}{
		{"grayscott", "[64, 64]", "100", []string{"u", "v"}, 0xB98C0B65},
		{"wave", "[24, 24, 24]", "50", []string{"u"}, 0x8C15DEEE},
	} {
		dir, files, sum := t.TempDir(), "", crc32.New(crc32.MakeTable(crc32.Castagnoli))
		for _, f := range c.fields {
			files += fmt.Sprintf("%s: %s, ", f, filepath.Join(dir, f+".npy"))
		}
		code, _, errs := cli("run", filepath.Join("../../configs", c.name+".yaml"), "--set", "devices.backend=host",
			"--set", "grid.size="+c.size, "--set", "stop.iterations="+c.steps, "--set", "output.picture=null",
			"--set", "output.field={"+files+"}")
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		for _, f := range c.fields {
			_, values, err := field.Read(filepath.Join(dir, f+".npy"))
			test.Check(t, err)
			test.Check(t, binary.Write(sum, binary.LittleEndian, values))
		}
		if sum.Sum32() != c.sum {
			t.Errorf("%s: checksum %08X, want %08X", c.name, sum.Sum32(), c.sum)
		}
	}
}

// A grid of one size is a row of points: with its own stable step, error and shape, and the values of plain arithmetic.
// Its picture is a curve.
func TestOneDimension(t *testing.T) {
	array, picture := filepath.Join(t.TempDir(), "f.npy"), filepath.Join(t.TempDir(), "f.svg")
	file := write(t, "c.yaml", `
solver: heat
grid: {size: [31]}
boundary: {x: {dirichlet: 0}}
initial: sin(pi*x)
exact: sin(pi*x)*exp(-pi^2*t)
stop: {iterations: 100}
devices: {backend: host}
decomposition: [3]
output: {field: `+array+`, picture: `+picture+`}
`)
	for command, text := range map[string]string{"plan": "heat on 31 points in float64, decomposition 3 on 3 ", "run": "subdomains 3\n"} {
		if code, out, errs := cli(command, file); code != 0 || !strings.Contains(out, text) {
			t.Errorf("%s: exit code %d, %s%s", command, code, out, errs)
		}
	}
	if svg := string(test.Must(os.ReadFile(picture))(t)); !strings.Contains(svg, ">u<") {
		t.Errorf("the picture has no axis of u: %.200s", svg)
	}
	want := make([]float64, 33)
	for i := range want[1:32] {
		want[i+1] = math.Sin(math.Pi * float64(i+1) / 32)
	}
	for range 100 {
		last := slices.Clone(want)
		for i := 1; i < 32; i++ {
			want[i] = (last[i-1] + last[i+1]) / 2
		}
	}
	shape, values, err := field.Read(array)
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-14 }
	if err != nil || !slices.Equal(shape, []int{31}) || !slices.EqualFunc(values, want[1:32], near) {
		t.Errorf("shape %v, values %v, not %v: %v", shape, values, want, err)
	}
}

// The field file holds the points in the order of their indices, whatever the cut. In a file for ParaView they also have
// their coordinates.
func TestFieldFile(t *testing.T) {
	array, image := filepath.Join(t.TempDir(), "f.npy"), filepath.Join(t.TempDir(), "f.vti")
	for precision, size := range map[string]int{"float64": 8, "float32": 4} {
		for _, file := range []string{array, image} {
			run(t, `
solver: heat
grid: {size: [5, 4, 6]}
boundary: {x: periodic, y: periodic, z: {dirichlet: 0}}
initial: x + 10*y + 100*z
heat: {dt: 1e-12}
stop: {iterations: 1}
devices: {backend: host}
decomposition: [2, 2, 1]
`, "--set", "precision="+precision, "--set", "output.field="+file)
		}
		shape, values, err := field.Read(array)
		if err != nil || !slices.Equal(shape, []int{6, 4, 5}) || len(values) != 120 {
			t.Fatalf("shape %v, %d values: %v", shape, len(values), err)
		}
		for i, v := range values {
			if x, y, z := float64(i%5)/5, float64(i/5%4)/4, float64(i/20+1)/7; math.Abs(v-x-10*y-100*z) > 1e-5 {
				t.Fatalf("value %d is %v", i, v)
			}
		}
		text, data, _ := bytes.Cut(content(t, image), []byte("\n_"))
		npy := content(t, array)
		if !bytes.HasPrefix(data[8:], npy[len(npy)-120*size:]) {
			t.Errorf("%s: the values for ParaView have other bits", precision)
		}
		place := `WholeExtent="0 4 0 3 0 5" Origin="0 0 0.14285714285714285" Spacing="0.2 0.25 0.14285714285714285"`
		if number := ` type="F` + precision[1:] + `" Name="u"`; !strings.Contains(string(text), place) || !strings.Contains(string(text), number) {
			t.Errorf("%s: %s", precision, text)
		}
	}
}

func TestBadUseIsRefused(t *testing.T) {
	good, folder := write(t, "good.yaml", small), filepath.Join(t.TempDir(), "folder.npy")
	test.Check(t, os.Mkdir(folder, 0o755))
	bad := write(t, "bad.yaml", strings.Replace(small, "heat", "heet", 1)+"color: red\n")
	for _, c := range []struct {
		name string
		code command.Code
		args []string
		says []string
	}{
		{"no file", command.Usage, []string{"run"}, []string{"FILE: must be one file, got 0: halox run FILE [flags]"}},
		{"two files", command.Usage, []string{"run", "a.yaml", "b.yaml"}, []string{"FILE: must be one file, got 2: halox run FILE [flags]"}},
		{"no results", command.Usage, []string{"results"}, []string{"FILE: must be at least one file, got none: halox results FILE... [flags]"}},
		{"no such file", command.Config, []string{"run", "none.yaml"}, []string{"none.yaml"}},
		{"several errors at once", command.Config, []string{"run", bad}, []string{"bad.yaml:2", "heet", "laplace", "color"}},
		{"check says the same", command.Config, []string{"config", "check", bad}, []string{"heet", "color"}},
		{"too many parts", command.Config, []string{"run", good, "--set", "decomposition=[1,9,1]", "--set", "devices.count=9"}, []string{"decomposition"}},
		{"parts for other devices", command.Config, []string{"run", good, "--set", "decomposition=[1,3,1]"}, []string{"decomposition", "3"}},
		{"no such device", command.Failed, []string{"run", good, "--set", "devices.backend=cuda", "--set", "devices.ids=[99]", "--set", "devices.count=1"}, []string{"devices."}},
		{"more devices than points", command.Config, []string{"run", good, "--set", "grid.size=[2,1,1]", "--set", "devices.count=3"}, []string{"devices.count"}},
		{"no such sample", command.Usage, []string{"config", "new", "heat4d"}, []string{"heat4d", "heat3d"}},
		{"no such command", command.Usage, []string{"fly"}, []string{"fly"}},
		{"outputs that cannot be written, both", command.Config, []string{"run", good, "--record", good + "/r.json", "--set", "output.field=" + folder},
			[]string{"output.field: " + folder + " cannot be written: it is a folder", "output.record: " + good + "/r.json"}},
		{"an output over the config", command.Config, []string{"run", good, "--record", good + ".json", "--set", "output.field=" + good}, []string{"output.field"}},
		{"an initial field that is not finite", command.Config, []string{"run", good, "--set", "initial=sqrt(-1)"}, []string{"initial", "finite"}},
		{"a wall that is not finite", command.Config, []string{"run", good, "--set", "boundary.x-={dirichlet: 1/0}"}, []string{"at face x-", "finite"}},
		{"an order of another scheme", command.Config, []string{"run", good, "--set", "exchange.order=pairwise"}, []string{"exchange.order", "must be concurrent or serial with scheme assisted"}},
		{"a path of none", command.Config, []string{"plan", good, "--set", "exchange.scheme=fused"}, []string{"exchange.path", "must be auto or direct with scheme fused"}},
		{"fewer devices do not help", command.Config, []string{"config", "check", good, "--set", "grid.size=[16,3,16]", "--set", "boundary.y=periodic", "--set", "exchange.steps=4", "--set", "devices.count=2"}, []string{"devices.count: ", "its neighbors need: use a larger grid, or fewer"}},
		{"too few layers to mirror", command.Config, []string{"config", "check", good, "--set", "grid.size=[16,16,1]", "--set", "boundary.z=neumann", "--set", "stencil.points=13", "--set", "devices.count=1"}, []string{"boundary: face z-: subdomain 0 owns 1 layers along z, must own at least 2 to mirror them: use a larger grid or a smaller stencil"}},
		{"too many devices for the steps", command.Config, []string{"config", "check", good, "--set", "devices.count=1024", "--set", "exchange.steps=4"}, []string{"devices.count: ", "its neighbors need: use fewer devices or a larger grid\n"}},
		{"too few points for one device", command.Config, []string{"config", "check", good, "--set", "devices.count=1", "--set", "grid.size=[9,1]", "--set", "boundary={y: periodic}", "--set", "stencil.points=9", "--set", "stencil.shape=star", "--set", "initial=0", "--set", "exact=0"}, []string{"devices.count: domain: [9 1] points: a periodic axis has fewer layers than the [2 2] that its ghosts need: use a larger grid\n"}},
		{"an initial field that is not finite, planned", command.Config, []string{"plan", good, "--set", "initial=1/0"}, []string{good + ": ", "initial is +Inf at point [0 "}},
		{"a start beyond the precision", command.Config, []string{"config", "check", good, "--set", "initial=1e60", "--set", "precision=float32"}, []string{"not finite in float32"}},
		{"a wall that moves, verified", command.Config, []string{"verify", good, "--set", "stencil.points=27", "--set", "grid.spacing=0.1", "--set", "boundary.x-={dirichlet: sin(t)}"}, []string{good + ": ", "the value at face x- varies in time"}},
		{"an initial field that is not finite, verified", command.Config, []string{"verify", good, "--set", "initial=1/0"}, []string{good + ": ", "initial is +Inf at point [0 "}},
		{"several at once, checked", command.Config, []string{"config", "check", good, "--set", "initial=1/0", "--set", "devices.count=1024", "--set", "output.record=" + good + "/r.json"}, []string{"initial is", "devices.count: ", "output.record: "}},
		{"devices beyond the grid, planned", command.Config, []string{"plan", good, "--set", "devices.count=1024"}, []string{"devices.count: ", "1024 parts"}},
		{"an exact solution that is not finite", command.Config, []string{"run", good, "--set", "exact=x<0.5?1:0/0"}, []string{good + ": ", "exact is NaN at point [5 0 0] after 40 steps, which is not finite"}},
		{"an exact solution that is not finite at the end", command.Config, []string{"run", good, "--set", "stop.tolerance=1e-3", "--set", "exact=1/(t-t)"}, []string{"exact is +Inf at point [0 0 0] after "}},
		{"too many devices for ranks", command.Config, []string{"run", good, "--set", "exchange={scheme: ranks, path: direct}", "--set", "devices.count=17", "--set", "grid.size=[11,8,17]"}, []string{good + ": exchange.scheme: ranks: must have at most 16 devices, got 17"}},
		{"no such scheme", command.Config, []string{"config", "check", good, "--set", "exchange.scheme=steam"}, []string{"auto, baseline, two-stream, assisted, graph, blocked, fused, ranks or resident"}},
		{"an empty name of a record", command.Usage, []string{"run", good, "--record", ""}, []string{"--record: must not be an empty file name"}},
		{"empty names of a bench", command.Usage, []string{"bench", "exchange", "--record", "", "--plot", ""}, []string{"--plot: must not be an empty file name"}},
		{"an empty name to draw into", command.Usage, []string{"plot", good, "-o", ""}, []string{"--out: must not be an empty file name"}},
		{"more steps between exchanges than solvers make", command.Config, []string{"config", "check", good, "--set", fmt.Sprint("exchange.steps=", solvers.MaxGroup+1)}, []string{fmt.Sprint("a whole number from 1 to ", solvers.MaxGroup)}},
		{"no such flag", command.Usage, []string{"run", good, "--fast"}, []string{"--fast"}},
		{"numbers that are none", command.Usage, []string{"bench", "schemes", "--exchange-steps", "1,auto"}, []string{"--exchange-steps: must be whole numbers, separated by commas, got \"1,auto\"\n"}},
		{"a time without a unit", command.Usage, []string{"bench", "schemes", "--budget", "5"}, []string{`--budget: must be a time with its unit, such as 300ms or 2m, got "5"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, stderr := cli(c.args...)
			if code != int(c.code) {
				t.Errorf("exit %d", code)
			}
			for _, s := range c.says {
				if !strings.Contains(stderr, s) {
					t.Errorf("%q is not in:\n%s", s, stderr)
				}
			}
		})
	}
}

// Exit codes are on their page.
func TestExitCodes(t *testing.T) {
	text := page(t, "docs/reference/exit-codes.md")
	codes, means := command.Codes()
	for _, code := range codes {
		if !strings.Contains(text, fmt.Sprintf("\n| %d | %s |\n", code, means[code])) {
			t.Errorf("docs/reference/exit-codes.md has no line for %d: %s", code, means[code])
		}
	}
}

// Each command has examples that it takes, and flags of one name are of one type everywhere.
func TestAllCommands(t *testing.T) {
	types := map[string]string{}
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if was := types[f.Name]; was != "" && was != f.Value.Type() {
				t.Errorf("%s --%s: %s, elsewhere %s", cmd.CommandPath(), f.Name, f.Value.Type(), was)
			}
			types[f.Name] = f.Value.Type()
		})
		examples := regexp.MustCompile(`(?m)halox ([^|\n]*)`).FindAllStringSubmatch(cmd.Example, -1)
		if len(examples) == 0 && !cmd.Hidden {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, e := range examples {
			shown, rest, err := newRoot().Find(strings.Fields(e[1]))
			if err == nil {
				err = shown.ParseFlags(rest)
			}
			if err != nil && err != pflag.ErrHelp {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), e[0], err)
			}
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(newRoot())
}

// With --json commands print JSON and nothing else, also with -q; -v prints phases to the standard error.
func TestJSON(t *testing.T) {
	stdin := test.Must(os.Open(write(t, "c.yaml", small)))(t)
	defer stdin.Close()
	defer func(was *os.File) { os.Stdin = was }(os.Stdin)
	os.Stdin = stdin
	record := filepath.Join(t.TempDir(), "r.json")
	for _, tc := range []struct{ args, has, notes string }{
		{"run - -v --record " + record, `"kind": "run"`, " s  stepping\n"},
		{"results -q " + record, `"scheme": "assisted"`, ""},
		{"plot -q --kind list", `"roofline": "`, ""},
		{"plot -o " + record + ".svg --kind list", `"roofline": "`, ""},
		{"version -v", `"version": "` + solve.Version, ""},
		{"devices -q", `"devices": [`, ""},
		{"plan -q " + write(t, "d.yaml", small), `"scheme": "assisted"`, ""},
		{"config explain -q " + write(t, "d.yaml", small), `"bytes_per_point": 16`, ""},
		{"config explain -q " + write(t, "e.yaml", "solver: equation\ngrid: {size: [8]}\nfields: {u: {}}\nequations: {u: lap(u) + sin(2*t)}\n"),
			`"text": "`, ""},
		{"config explain -q " + write(t, "f.yaml", reaction), `"time_step": "0.0252`, ""},
		{"config check -q " + write(t, "f.yaml", reaction), `"time_step": "0.0252`, ""},
		{"verify -q " + write(t, "d.yaml", small), `"result": "ok"`, ""},
		{"bench exchange -q --backend host --devices 1 --points 4 --paths staged", `"kind": "exchange"`, ""},
		{"config new heat2d " + record + ".yaml", `"wrote": "`, ""},
		{"bench pack --figure list", `"wu-6": "`, ""},
	} {
		code, out, notes := cli(append(strings.Fields(tc.args), "--json")...)
		if code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, tc.has) || !strings.Contains(notes, tc.notes) || tc.notes == "" && !strings.HasPrefix(notes, "No GPU") && notes != "" {
			t.Errorf("%s: exit %d:\n%s%s", tc.args, code, out, notes)
		}
	}
}

// Values of flags are completed, in lists too, and configs by their endings.
func TestHelpAndCompletion(t *testing.T) {
	if code, out, errs := cli("run", "--help"); code != 0 || !strings.Contains(out, "\n  -q, --quiet  ") || strings.Contains(out, "true|false") {
		t.Errorf("exit %d: %s%s", code, out, errs) // booleans have no values, which everybody knows
	}
	for args, want := range map[string]string{
		"bench schemes --schemes fused,": "fused,resident\n", "bench exchange --paths ": "staged\n",
		"plot --kind ": "roofline\n", "results --format ": "csv\n", "run ": "yaml\nyml\ntoml\n:8\n",
		"plan --networks hdr200,": "hdr200,ndr400\n", "config new ": "heat3d\n",
	} {
		if code, out, errs := cli(strings.Split("__complete "+args, " ")...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errs)
		}
	}
}

// A driver named by HALOX_CUDA must exist, unless the backend is host.
func TestDriverThatIsNamed(t *testing.T) {
	t.Setenv("HALOX_CUDA", "/nowhere/libcuda.so")
	file := write(t, "c.yaml", small)
	code, _, stderr := cli("plan", file, "--set", "devices.backend=auto")
	if code != int(command.Failed) || !strings.Contains(stderr, "devices.backend: HALOX_CUDA: ") || !strings.Contains(stderr, "/nowhere/libcuda.so") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := cli("plan", file); code != 0 {
		t.Errorf("backend host: exit %d: %s", code, stderr)
	}
}

// reaction has a decay that dt ignores.
const reaction = `solver: equation
grid: {size: [8, 8], start: [1, 0], end: [2, 1]}
boundary: {x: neumann, y: neumann}
fields: {u: {initial: 100*x}}
equations: {u: 0.139*lap(u) - 3*u^2}
stop: {iterations: 3}
devices: {backend: host}
`

// A check and a run say what the time step ignores and where the points are, and a run that it has diverged.
func TestIgnoredTerms(t *testing.T) {
	file := write(t, "c.yaml", reaction)
	for command, all := range map[string][]string{
		"config check": {"grid  x from 1.0625 to 1.9375 in steps of 0.125\n", "dt    0.0252", "stable up to 0.0281025, ignoring -3 * u^2\n"},
		"run":          {"time step  stable up to 0.0281, ignoring -3 * u^2\n", "warning    the last step changed the field by "},
	} {
		code, out, stderr := cli(append(strings.Fields(command), file)...)
		for _, has := range all {
			if code != 0 || !strings.Contains(out, has) {
				t.Errorf("%s: exit %d, no %q in\n%s%s", command, code, has, out, stderr)
			}
		}
	}
	keys, r := run(t, reaction)
	if ran := keys["run"].(map[string]any); fmt.Sprint(ran["origin"], ran["spacing"]) != "[1.0625 0.0625] [0.125 0.125]" {
		t.Errorf("points from %v in steps of %v", ran["origin"], ran["spacing"])
	}
	if len(r.Run.Warnings) != 1 || fmt.Sprint(r.Run.IgnoredTerms) != "[-3 * u^2]" {
		t.Errorf("got %v and %v", r.Run.Warnings, r.Run.IgnoredTerms)
	}
}

// A run that diverges ends, without a tolerance too, with a record and without fields.
func TestDivergingRunFails(t *testing.T) {
	dir := t.TempDir()
	file, field := filepath.Join(dir, "r.json"), filepath.Join(dir, "u.npy")
	code, _, stderr := cli("run", write(t, "c.yaml", small), "--record", file, "--set", "heat.dt=0.1", "--set", "heat.force=true",
		"--set", "stop.iterations=1000000000", "--set", "output.field="+field)
	if code != int(command.Diverged) || !strings.Contains(stderr, "non-finite values") || !strings.Contains(stderr, "heat.dt") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	r, err := results.Read(file)
	if err != nil || r.Run.Stopped != results.StopDiverged || r.Failure == "" || r.Run.Iterations < 100 {
		t.Errorf("record %+v, %v", r, err)
	}
	if _, err := os.Stat(field); err == nil {
		t.Error("there is a field")
	}
}

// Walls may change with time where there is time.
func TestWallsThatUseTime(t *testing.T) {
	const text = "grid: {size: [8, 8]}\nboundary: {x-: {dirichlet: sin(10*t)}}\nsolver: "
	if code, out, errs := cli("config", "check", write(t, "c.yaml", text+"heat")); code != 0 || errs != "" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := cli("config", "check", write(t, "c.yaml", text+"laplace")); code != int(command.Config) || !strings.Contains(errs, "must not use t") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Whatever the devices, the scheme, the path and the steps between two exchanges, the field files are the same to the last byte, and
// the record says how many steps there were.
func TestFilesAreTheSameFromAnyRun(t *testing.T) {
	var want []byte
	for _, tc := range []struct {
		set   string
		steps int
	}{
		{"devices.count=1 exchange.scheme=auto", 0}, {"devices.count=3 exchange.scheme=baseline", 0},
		{"devices.count=4 exchange.scheme=two-stream exchange.order=pairwise", 0}, {"devices.count=4 exchange.scheme=assisted exchange.path=peer", 0},
		{"exchange.steps=4", 4}, {"exchange.scheme=resident exchange.steps=3", 3}, {"exchange.steps=auto", 0}, // CPU devices try nothing
	} {
		file := filepath.Join(t.TempDir(), "u.npy")
		flags := []string{"--set", "output.field=" + file, "--set", "exchange.path=auto"}
		for s := range strings.FieldsSeq(tc.set) {
			flags = append(flags, "--set", s)
		}
		_, r := run(t, small, flags...)
		got := content(t, file)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) || r.Run.StepsPerExchange != tc.steps {
			t.Errorf("%s: %d steps per exchange in the record, not %d, or another file", tc.set, r.Run.StepsPerExchange, tc.steps)
		}
	}
}
