package results_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/trace"
)

// schema is record.schema.json.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	s, err := compiler.Compile("record.schema.json")
	check(t, err)
	return s
}

// valid fails unless a file is as the schema says.
func valid(t *testing.T, s *jsonschema.Schema, path string) {
	t.Helper()
	file, err := os.Open(path)
	check(t, err)
	defer file.Close()
	v, err := jsonschema.UnmarshalJSON(file)
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// records lists all records in the folders of this package.
func records(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".json" && !strings.HasSuffix(path, ".schema.json") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d records: %v", len(paths), err)
	}
	return paths
}

// Every record in the repository can be read, and satisfies the schema when it is written.
func TestKeptRecords(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
	s := schema(t)
	for _, path := range records(t) {
		if bytes.Contains(resultstest.ReadFile(t, path), []byte(`"traceEvents"`)) {
			if trace, err := trace.Read(path); err != nil || !trace.Traced() {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		r, err := results.Read(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(r.Rows) == 0 || len(r.Devices) == 0 || r.Started.IsZero() || r.Halox.Version == "" ||
			r.Host.Cores == 0 && r.Command != nil { // unknown of times that were typed in
			t.Errorf("%s: %d rows of %+v", path, len(r.Rows), r)
		}
		again := filepath.Join(t.TempDir(), "again.json")
		if err := r.Write(again); err != nil {
			t.Error(err)
			continue
		}
		valid(t, s, again)
	}
}

// The schema knows the kinds and the keys that are written, and refuses others.
func TestSchema(t *testing.T) {
	s, path := schema(t), filepath.Join(t.TempDir(), "r.json")
	var file struct {
		Properties struct {
			Schema struct{ Const int }
			Kind   struct{ Enum []results.Kind }
		}
	}
	check(t, json.Unmarshal(resultstest.ReadFile(t, "record.schema.json"), &file))
	if file.Properties.Schema.Const != results.SchemaVersion || !slices.Equal(file.Properties.Kind.Enum, results.Kinds()) {
		t.Errorf("%+v", file)
	}
	for _, r := range []*results.Record{finished(), samplePacks(), samplePings(), {Kind: results.KindLinks}} {
		check(t, r.Write(path))
		valid(t, s, path)
	}
	for name, text := range map[string]string{
		"no rows":              `{"schema": 2, "kind": "pack", "halox": {"version": "1"}, "started": "2026-02-03T04:05:06Z", "host": {"os": "l", "arch": "a", "cores": 1}, "devices": []}`,
		"a run without a run":  `{"schema": 2, "kind": "run", "halox": {"version": "1"}, "started": "2026-02-03T04:05:06Z", "host": {"os": "l", "arch": "a", "cores": 1}, "devices": [], "rows": []}`,
		"no time":              `{"schema": 2, "kind": "pack", "halox": {"version": "1"}, "started": "yesterday", "host": {"os": "l", "arch": "a", "cores": 1}, "devices": [], "rows": []}`,
		"a median by itself":   `{"schema": 2, "kind": "pack", "halox": {"version": "1"}, "started": "2026-02-03T04:05:06Z", "host": {"os": "l", "arch": "a", "cores": 1}, "devices": [], "rows": [{"labels": {}, "values": {"time": {"unit": "us", "median": 3}}}]}`,
		"a label that is true": `{"schema": 2, "kind": "pack", "halox": {"version": "1"}, "started": "2026-02-03T04:05:06Z", "host": {"os": "l", "arch": "a", "cores": 1}, "devices": [], "rows": [{"labels": {"a": true}, "values": {}}]}`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		check(t, err)
		if s.Validate(v) == nil {
			t.Errorf("%s: the schema takes it", name)
		}
	}
}
