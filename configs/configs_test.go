package configs_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/stencil"
)

var update = flag.Bool("update", false, "write the messages of testdata anew; look at what changed")

// TestFiles loads every file of testdata. A bad one has its messages beside it, a good one its Run.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*.*")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		if !slices.Contains([]string{".yaml", ".toml"}, filepath.Ext(file)) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			run, err := configs.Load(file, allNames)
			golden(t, strings.TrimSuffix(file, filepath.Ext(file))+".txt", outcome(t, run, err))
		})
	}
}

// outcome is the messages of a bad config, or the YAML form of a good one.
func outcome(t *testing.T, run *configs.Run, err error) string {
	t.Helper()
	if err != nil {
		return strings.ReplaceAll(err.Error(), "testdata/", "") + "\n"
	}
	text, err := yaml.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("not what %s says (-want +got):\n%s", file, diff)
	}
	if bad := strings.Contains(file, ".bad."); bad != strings.HasPrefix(
		got,
		filepath.Base(file[:strings.Index(file, ".")])+".",
	) {
		t.Errorf("bad is %v, and it gave\n%s", bad, got)
	}
}

// options are those of halox that configs cannot do without. allNames adds stand-ins for the names of schemes and
// paths.
var options, allNames = func() (o, all configs.Options) {
	o.UnitSpacing = unitSpacing
	o.Boundaries = []configs.BoundaryKind{{Name: "neumann"}, {Name: configs.Dirichlet, Value: true}}
	for _, dims := range []int{2, 3} {
		for _, k := range stencil.Kinds(dims) {
			selects := configs.Stencil{Points: k.Points, Shape: string(k.Shape)}
			kind := configs.StencilKind{
				Dims:       dims,
				Stencil:    selects,
				OneSpacing: k.OneSpacing(),
				StableStep: k.StableStep,
			}
			o.Stencils = append(o.Stencils, kind)
		}
	}
	all = o
	all.CheckExpression = checkNames
	all.Paths, all.Networks = []string{"staged", "peer", "direct"}, []string{"wire", "pigeon"}
	direct := []string{"direct"}
	all.Schemes = []configs.Scheme{
		{Name: "baseline", Paths: []string{"staged"}, Groups: true},
		{Name: "two-stream", Orders: []string{"left-right", "pairwise"}, Groups: true},
		{Name: "assisted", Groups: true},
		{Name: "graph", Steady: true, Groups: true},
		{Name: "fused", Paths: direct, Groups: true},
		{Name: "ranks", Paths: direct, Steady: true},
		{Name: "resident", Paths: direct, Steady: true, Groups: true},
	}
	return o, all
}()

// unitSpacing stands in for halox's: a Neumann wall is half a spacing from the nearest point, a Dirichlet wall a whole
// one.
func unitSpacing(points int, ends [2]configs.FaceKind) float64 {
	half := 2 * points
	for _, kind := range ends {
		if kind == configs.Dirichlet {
			half++
		}
	}
	return 2 / float64(half)
}

var word = regexp.MustCompile(`[a-z]+`)

// checkNames stands in for the parser of expressions: it knows names and nothing else.
func checkNames(src string) (func(string) bool, error) {
	const known = " x y z i j k nx ny nz t pi sin exp sinh sqrt tanh hypot e "
	words := word.FindAllString(src, -1)
	for _, w := range words {
		if !strings.Contains(known, " "+w+" ") {
			return nil, fmt.Errorf("column %d: unknown name %q", strings.Index(src, w)+1, w)
		}
	}
	if strings.Count(src, "(") != strings.Count(src, ")") {
		return nil, errors.New("a parenthesis is left open")
	}
	return func(name string) bool { return slices.Contains(words, name) }, nil
}

// TestRunReadsBack feeds what a record holds of a config to Load again.
func TestRunReadsBack(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.good.yaml")
	samples, _ := filepath.Glob("*.yaml")
	for _, file := range append(files, samples...) {
		run, err := configs.Load(file, options)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{asJSON, asYAML} {
			again, err := configs.Parse("again.yaml", text, options)
			if err != nil {
				t.Fatalf("%s gave\n%s\nwhich does not read back: %v", file, text, err)
			}
			if diff := cmp.Diff(run, again); diff != "" {
				t.Errorf("%s reads back otherwise:\n%s", file, diff)
			}
		}
	}
}

func TestLoadWithoutFile(t *testing.T) {
	_, err := configs.Load("testdata/none.yaml", options)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestProblemsCanBeTakenApart(t *testing.T) {
	_, err := configs.Load("testdata/precision.bad.yaml", options)
	var first configs.Problem
	if !errors.As(err, &first) {
		t.Fatalf("got %v", err)
	}
	want := configs.Problem{
		Source: "testdata/precision.bad.yaml", Line: 3,
		Key: "precision", Value: `"half"`, Reason: "must be float64 or float32",
	}
	if first != want {
		t.Errorf("got %#v", first)
	}
}

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/*.toml", "*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, filepath.Ext(file) == ".toml")
		}
	}
	f.Add([]byte("a: &a [*a]"), false)
	f.Add([]byte("\xff\xfes\x00"), false)
	f.Add([]byte(strings.Repeat("[", 20000)), false)
	f.Fuzz(func(t *testing.T, data []byte, isTOML bool) {
		name := map[bool]string{false: "f.yaml", true: "f.toml"}[isTOML]
		o := allNames
		o.Set = []string{"stop=" + string(data)}
		run, err := configs.Parse(name, data, o)
		if (run == nil) == (err == nil) {
			t.Fatalf("a run %v and an error %v", run, err)
		}
		var problems configs.Problems
		if err != nil && (!errors.As(err, &problems) || len(strings.Split(err.Error(), "\n")) != len(problems)) {
			t.Errorf("not one line a problem: %q", err)
		}
		if run != nil && run.Heat != nil && run.TimeStep() <= 0 {
			t.Errorf("time step %v", run.TimeStep())
		}
	})
}
