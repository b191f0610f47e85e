package configs_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/halox/halox/configs"
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
			run, err := configs.Load(file, configs.Options{})
			golden(t, strings.TrimSuffix(file, filepath.Ext(file))+".txt", outcome(t, run, err))
		})
	}
}

// outcome is the messages of a bad config, or the JSON form of a good one.
func outcome(t *testing.T, run *configs.Run, err error) string {
	t.Helper()
	if err != nil {
		return strings.ReplaceAll(err.Error(), "testdata/", "") + "\n"
	}
	text, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
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
	start := filepath.Base(file[:strings.Index(file, ".")]) + "."
	if bad := strings.Contains(file, ".bad."); bad != strings.HasPrefix(got, start) {
		t.Errorf("bad is %v, and it gave\n%s", bad, got)
	}
}

// TestRunReadsBack feeds what a record holds of a config to Load again.
func TestRunReadsBack(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.good.yaml")
	samples, _ := filepath.Glob("*.yaml")
	for _, file := range append(files, samples...) {
		run, err := configs.Load(file, configs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		again, err := configs.Parse("again.yaml", text, configs.Options{})
		if err != nil {
			t.Fatalf("%s gave\n%s\nwhich does not read back: %v", file, text, err)
		}
		if diff := cmp.Diff(run, again); diff != "" {
			t.Errorf("%s reads back otherwise:\n%s", file, diff)
		}
	}
}

func TestLoadWithoutFile(t *testing.T) {
	_, err := configs.Load("testdata/none.yaml", configs.Options{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestProblemsCanBeTakenApart(t *testing.T) {
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
		run, err := configs.Parse(name, data, configs.Options{Set: []string{"stop=" + string(data)}})
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
