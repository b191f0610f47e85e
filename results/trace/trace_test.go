package trace_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/trace"
)

func TestTraceComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "run.json")
	want := resultstest.Trace()
	test.Check(t, want.Write(path))
	got := test.Must(trace.Read(path))(t)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var tree any // as others save it: with sorted keys and a byte order mark
	test.Check(t, json.Unmarshal(resultstest.ReadFile(t, path), &tree))
	sorted, err := json.Marshal(tree)
	if err == nil {
		err = os.WriteFile(path, append([]byte("\ufeff"), sorted...), 0o644)
	}
	if err != nil || bytes.Index(sorted, []byte("traceEvents")) < 512 || !trace.Begun(path) {
		t.Errorf("%v: not recognized as a trace", err)
	}
	if got, err = trace.Read(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got  %+v\nwant %+v", err, got, want)
	}
}

// The file is valid for viewers of the format: names for all processes and threads, complete events sorted by time,
// and the share as a number.
func TestTraceIsInTheFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	test.Check(t, resultstest.Trace().Write(path))
	var f struct {
		TraceEvents []struct {
			Name, Cat, Ph string
			TS, Dur       *float64
			PID, TID      int
			Args          map[string]any
		}
		DisplayTimeUnit string
		OtherData       map[string]any
	}
	test.Check(t, json.Unmarshal(resultstest.ReadFile(t, path), &f))
	processes, threads, last, n := map[int]string{}, map[int]int{}, 0.0, 0
	for _, e := range f.TraceEvents {
		switch {
		case e.Ph == "M" && e.Name == "process_name":
			processes[e.PID] = e.Args["name"].(string)
		case e.Ph == "M" && e.Name == "thread_name":
			threads[e.TID] = e.PID
		case e.Ph == "X":
			if n++; *e.TS < last || *e.Dur < 0 || processes[e.PID] == "" || threads[e.TID] != e.PID || e.Args["step"] == nil {
				t.Errorf("event %+v after %v", e, last)
			}
			last = *e.TS
		}
	}
	if n != 60 || len(processes) != 2 || len(threads) != 4 || processes[0] != "" || f.DisplayTimeUnit != "ns" {
		t.Errorf("%d events, processes %v, threads %v", n, processes, threads)
	}
	hidden, communication := resultstest.Trace().Hidden()
	if share, ok := f.OtherData["hidden_share"].(float64); !ok || share != hidden.Seconds()/communication.Seconds() || share <= 0.5 || share >= 1 {
		t.Errorf("hidden_share %v", f.OtherData["hidden_share"])
	}
}

func TestTraceErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	for _, tc := range []struct {
		name  string
		spoil func(o []trace.Operation)
		want  string
	}{
		{"an overlap", func(o []trace.Operation) { o[1].Begin -= 1 }, "GPU 0, NVIDIA H200, boundary: sweep boundary from"},
		{"an early end", func(o []trace.Operation) { o[1].End = o[1].Begin - 1 }, "must begin after the previous operation, which ended at"},
		{"a category", func(o []trace.Operation) { o[2].Category = "magic" }, `has unknown category "magic"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bad := resultstest.Trace()
			tc.spoil(bad.Devices[0].Streams[0].Operations)
			resultstest.WantError(t, bad.Write(path), "write trace", path, tc.want)
		})
	}
	for name, text := range map[string]string{
		"no JSON": "x,y\n", "a record": `{"schema": 1}`, "a list": `[1, 2]`, "another trace": `{"traceEvents": [], "otherData": {"version": "chrome"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			test.Check(t, os.WriteFile(path, []byte(text), 0o644))
			if _, err := trace.Read(path); !isNotTrace(err) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v", err)
			}
		})
	}
	const head = `{"otherData": {"format": "halox trace", "schema": 1, "alignment": [{"device": "a", "within_us": 1}]}, "traceEvents": `
	for name, text := range map[string]string{
		"a newer one":      `{"otherData": {"format": "halox trace", "schema": 2}}`,
		"no such device":   head + `[{"ph": "X", "name": "k", "pid": 2, "tid": 1, "ts": 1, "dur": 1}]}`,
		"no such stream":   head + `[{"ph": "X", "name": "k", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}`,
		"a time before it": head + `[{"ph": "X", "name": "k", "pid": 1, "tid": 1, "ts": -1, "dur": 1}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			test.Check(t, os.WriteFile(path, []byte(text), 0o644))
			if _, err := trace.Read(path); err == nil || isNotTrace(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func isNotTrace(err error) bool {
	return err != nil && strings.Contains(err.Error(), "not a halox trace")
}
