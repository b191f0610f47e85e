package resultstest

import (
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/trace"
)

// LayoutRow begins the row of a layout of that name, with 1000 bytes.
func LayoutRow(name string) results.Row {
	parts := strings.Split(name, "/")
	row := results.LayoutRow(parts[0], parts[1], parts[2], 1000)
	row.Checked = true
	return row
}

// Transfer adds what 1000 bytes took, of which a copy in one piece takes 2 us.
func Transfer(row results.Row, us float64) results.Row {
	return row.Transfer(1000, measure.Exact(us), measure.Exact(2))
}

// PackRow is what an engine took for a layout.
func PackRow(name, direction, engine string, us float64) results.Row {
	row := LayoutRow(name).Label(
		"direction", direction,
	).Label("memory", "device").Label("pieces", 10).Label("engine", engine)
	return Transfer(row, us)
}

// Took makes the row one of auto.
func Took(row results.Row, engine string) results.Row {
	row = row.Label("engine", "auto").Label("took", engine)
	row.Note = engine + " 1 us"
	return row
}

// Around is a sample of nine measurements about a number.
func Around(v float64) results.Sample {
	var all []float64
	for i := range 9 {
		all = append(all, v*(1+0.04*float64(i-4)))
	}
	return measure.NewSample(all)
}

// Source is a record of four GPUs with rows.
func Source(kind results.Kind, rows ...results.Row) results.Source {
	r := &results.Record{Kind: kind, Host: results.Host{Name: "node1", Cores: 64}, Rows: rows}
	for id := range 4 {
		r.Devices = append(r.Devices, results.Device{ID: id, Name: "a GPU", Backend: "cuda"})
	}
	return results.Source{Name: string(kind) + ".json", Record: r}
}

// Schemes has four GPUs, schemes and paths over the size.
func Schemes() results.Source {
	s := Source(results.KindSchemes)
	for i, scheme := range []string{"two-stream", "assisted", "fused"} {
		for _, path := range []string{"peer", "staged"} {
			for _, points := range []float64{64, 128, 256, 512} {
				slow := map[string]float64{"peer": 1, "staged": 3}[path]
				row := results.NewRow().Label("scheme", scheme).Label("path", path).Label("points", points)
				s.Add(row.Label("devices", 4).
					Value(results.GFLOPS, Around(8000/(1+slow*float64(200-20*i)/points))))
			}
		}
	}
	return s
}

// Sweep has stencils over the size.
func Sweep() results.Source {
	s := Source(results.KindSweep)
	for i, stencil := range []string{"7-point", "13-point", "27-point"} {
		for _, points := range []float64{64, 128, 256, 512} {
			s.Add(results.NewRow().Label("stencil", stencil).Label("precision", "float64").Label("points", points).
				Value(results.Share, Around((0.95-0.1*float64(i))*points/(points+60))))
		}
	}
	return s
}

// Elsewhere is a source with another name, from another machine.
func Elsewhere(s results.Source) results.Source {
	r := *s.Record
	r.Devices = []results.Device{{Name: "another GPU", Backend: "cuda"}}
	r.Host.Name, r.Interrupted = "node2", true
	r.Rows = nil
	for _, row := range s.Rows {
		share, _ := row.Get(results.Share)
		r.Add(row.Value(results.Share, share.Scale(0.7)))
	}
	return results.Source{Name: "elsewhere.json", Record: &r}
}

// Read is the record in a file.
func Read(t *testing.T, path string) results.Source {
	t.Helper()
	all, err := results.ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// Trace returns three steps of two devices with two streams each.
func Trace() *trace.Trace {
	const us = time.Microsecond
	t := &trace.Trace{About: trace.About{
		Halox: results.Program{
			Version: "1.0", Commit: "abc",
		}, Solver: "heat", Size: []int{64, 32, 16}, Precision: "float64",
		Scheme: "two-stream", Order: "left-right", Path: "peer",
	}}
	for i, name := range []string{"GPU 0, NVIDIA H200", "GPU 1, NVIDIA H200"} {
		boundary, interior := trace.Stream{Name: "boundary"}, trace.Stream{Name: "interior"}
		at := time.Duration(i) * 3 * us
		for step := range int64(3) {
			add := func(s *trace.Stream, name, category string, took time.Duration) {
				o := trace.Operation{Name: name, Category: category, Begin: at, End: at + took, Step: 6 + step}
				if n := len(s.Operations); n > 0 {
					o.Begin = max(at, s.Operations[n-1].End)
					o.End = o.Begin + took
				}
				if category == "copy" {
					o.Bytes, o.With = 4096, "GPU 1, NVIDIA H200"
				}
				s.Operations = append(s.Operations, o)
			}
			add(&boundary, "wait", "wait", us)
			add(&boundary, "sweep boundary", "sweep", 4*us)
			add(&interior, "wait", "wait", us/2)
			add(&interior, "sweep interior", "sweep", 21*us+123)
			add(&boundary, "pack", "pack", 3*us)
			add(&boundary, "copy to peer", "copy", 9*us)
			add(&boundary, "wait", "wait", 2*us)
			add(&boundary, "unpack", "unpack", 5*us)
			add(&boundary, "store", "exchange", 2*us)
			add(&interior, "norms", "other", 2*us)
			at += 30 * us
		}
		t.Devices = append(
			t.Devices,
			trace.Device{Name: name, ClockError: 1500 * time.Nanosecond, Streams: []trace.Stream{boundary, interior}},
		)
	}
	return t
}
