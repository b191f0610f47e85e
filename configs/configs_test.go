package configs_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/test"
)

var update = flag.Bool("update", false, "rewrite the messages of testdata; check the changes")

// TestFiles loads every file of testdata. A bad one has its messages next to it, a good one its Run.
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
			run, err := configs.Load(file, configs.Options{})
			golden(t, strings.TrimSuffix(file, filepath.Ext(file))+".txt", outcome(t, run, err))
		})
	}
}

// outcome returns the messages of a bad config, or the JSON form of a good one.
func outcome(t *testing.T, run *configs.Run, err error) string {
	t.Helper()
	if err != nil {
		return strings.ReplaceAll(err.Error(), "testdata/", "") + "\n"
	}
	text := test.Must(json.MarshalIndent(run, "", " "))(t)
	return string(text) + "\n"
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		test.Check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := test.Must(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", file, diff)
	}
	start := filepath.Base(file[:strings.Index(file, ".")]) + "."
	if bad := strings.Contains(file, ".bad."); bad != strings.HasPrefix(got, start) {
		t.Errorf("bad is %v, and it gave\n%s", bad, got)
	}
}

// TestRunReadsBack loads the config in a record again.
func TestRunReadsBack(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.good.yaml")
	samples, _ := filepath.Glob("*.yaml")
	for _, file := range append(files, samples...) {
		run := test.Must(configs.Load(file, configs.Options{}))(t)
		text := test.Must(json.Marshal(run))(t)
		again, err := configs.Parse("again.yaml", text, configs.Options{})
		if err != nil {
			t.Fatalf("%s gave\n%s\nwhich does not read back: %v", file, text, err)
		}
		if diff := cmp.Diff(run, again); diff != "" {
			t.Errorf("%s reads back differently:\n%s", file, diff)
		}
	}
}

func TestLoadWithoutFile(t *testing.T) {
	_, err := configs.Load("testdata/none.yaml", configs.Options{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestProblemFields(t *testing.T) {
	_, err := configs.Load("testdata/precision.bad.yaml", configs.Options{})
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

// addConfigs adds all configs of the package to the seeds, and whether they are TOML.
func addConfigs(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/*.toml", "*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data := test.Must(os.ReadFile(file))(f)
			f.Add(data, filepath.Ext(file) == ".toml")
		}
	}
}

func FuzzLoad(f *testing.F) {
	addConfigs(f)
	f.Add([]byte("a: &a [*a]"), false)
	f.Add([]byte("\xff\xfes\x00"), false)
	f.Add([]byte(strings.Repeat("[", 20000)), false)
	f.Fuzz(func(t *testing.T, data []byte, isTOML bool) {
		name := map[bool]string{false: "f.yaml", true: "f.toml"}[isTOML]
		run, err := configs.Parse(name, data, configs.Options{Set: []string{"stop=" + string(data)}})
		if (run == nil) == (err == nil) {
			t.Fatalf("a run %v and an error %v", run, err)
		}
		var problems configs.Problems
		if err != nil && (!errors.As(err, &problems) || len(strings.Split(err.Error(), "\n")) != len(problems)) {
			t.Errorf("not one line per problem: %q", err)
		}
		if run != nil && run.Heat != nil && run.TimeStep() <= 0 {
			t.Errorf("time step %v", run.TimeStep())
		}
	})
}

// The same tree in TOML and in YAML gives the same run, or the same problems except for their lines.
func FuzzTOMLAgainstYAML(f *testing.F) {
	addConfigs(f)
	f.Add([]byte("solver='heat'\ngrid.size=[8.0, 1_0]\nheat.dt=+1e-3\n[output]\nfield=1979-05-27\npicture=''"), true)
	f.Add([]byte("{solver: heat, grid: {size: [0o10, 0x8]}, initial: yes, heat.dt: 1979-05-27, Stop: {a: ['', .inf]}}"), false)
	f.Fuzz(func(t *testing.T, data []byte, isTOML bool) {
		var node yaml.Node
		var tree map[string]any
		var err error
		from, to := "c.yaml", "c.toml"
		var other []byte
		if isTOML {
			from, to = to, from
			err = toml.Unmarshal(data, &tree)
			other, _ = yaml.Marshal(tree)
		} else if yaml.Unmarshal(data, &node) != nil || !inTOML(&node) {
			return
		} else if err = node.Decode(&tree); err == nil {
			other, err = toml.Marshal(tree)
		}
		if err != nil || len(tree) == 0 {
			return
		}
		first, wrong1 := configs.Parse(from, data, configs.Options{})
		if slices.ContainsFunc(reasons(wrong1), func(r string) bool { return strings.HasPrefix(r, ": ") }) {
			return // an error of the whole file: yaml.Unmarshal reads only the first document, and any bytes
		}
		second, wrong2 := configs.Parse(to, other, configs.Options{})
		if diff := cmp.Diff(first, second); diff != "" || !slices.Equal(reasons(wrong1), reasons(wrong2)) {
			t.Errorf("%s\nof %s\n%s\n%v\nof %s\n%s\n%v", diff, from, data, wrong1, to, other, wrong2)
		}
	})
}

var octal = regexp.MustCompile(`^[-+]?0[0-9_]`)

// inTOML reports whether TOML supports a tree: it has no null, aliases, tags, numbers such as 010, and keys
// other than texts.
func inTOML(n *yaml.Node) bool {
	for i, item := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && item.ShortTag() != "!!str" || !inTOML(item) {
			return false
		}
	}
	return n.Kind != yaml.AliasNode && !octal.MatchString(n.Value) && n.ShortTag() != "!!null" && n.Style&yaml.TaggedStyle == 0
}

// reasons returns problems without files, lines and values, which differ between the formats; none of those
// that are too many to report.
func reasons(err error) (all []string) {
	var problems configs.Problems
	if errors.As(err, &problems); len(problems) > 20 {
		return nil
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Reason, "must be given once") {
			return []string{"a key twice"} // which of them is read depends on their order
		}
		all = append(all, p.Key+": "+p.Reason)
	}
	slices.Sort(all)
	return all
}
