package resultstest

import (
	"math"
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

// around is a sample of nine measurements about a number.
func around(v float64) results.Sample {
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

// carried is the rate of a link that takes 4 us to begin.
func carried(bytes, peak float64) float64 { return bytes / (4 + bytes/peak/1e3) / 1e3 }

// Links has four GPUs, the last of which hangs on another kind of link.
func Links() results.Source {
	s := Source(results.KindLinks)
	for _, path := range []string{"peer", "direct", "staged"} {
		for from := range 4 {
			for to := range 4 {
				peak := map[string]float64{"peer": 390, "direct": 340, "staged": 22}[path]
				link := "NV18"
				if from == 3 || to == 3 {
					peak, link = min(peak, 50), "PIX"
				}
				for bytes := 1024.0; bytes <= 1<<28 && from != to; bytes *= 8 {
					s.Add(results.NewRow().Label("from", from).Label("to", to).Label("link", link).Label("path", path).Label("bytes", bytes).
						Value(results.Rate, around(carried(bytes, peak))).Number(results.PeerRate, carried(bytes, 400)))
				}
			}
		}
	}
	return s
}

// Schemes has four GPUs, schemes and paths over the size.
func Schemes() results.Source {
	s := Source(results.KindSchemes)
	for i, scheme := range []string{"two-stream", "assisted", "fused"} {
		for _, path := range []string{"peer", "staged"} {
			for _, points := range []float64{64, 128, 256, 512} {
				slow := map[string]float64{"peer": 1, "staged": 3}[path]
				s.Add(results.NewRow().Label("scheme", scheme).Label("path", path).Label("points", points).Label("devices", 4).
					Value(results.GFLOPS, around(8000/(1+slow*float64(200-20*i)/points))))
			}
		}
	}
	return s
}

// Scaling has one scheme over the number of GPUs, for two sizes.
func Scaling() results.Source {
	s := Source(results.KindScaling)
	for _, points := range []float64{256, 512} {
		for _, devices := range []float64{1, 2, 4, 8} {
			s.Add(results.NewRow().Label("scheme", "fused").Label("points", points).Label("devices", devices).
				Value(results.Step, around(1000/devices+20*math.Log2(devices)*512/points)))
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
				Value(results.Share, around((0.95-0.1*float64(i))*points/(points+60))))
		}
	}
	return s
}

// Rates has sweeps with their operations and the bytes that they move.
func Rates() results.Source {
	s := Source(results.KindSweep)
	for i, stencil := range []string{"7-point", "13-point", "27-point"} {
		for _, size := range []float64{4, 8} {
			for _, points := range []float64{64, 512} {
				rate := (4000 - 300*float64(i)) * points / (points + 20)
				s.Add(results.NewRow().Label("stencil", stencil).Label("precision", map[float64]string{4: "float32", 8: "float64"}[size]).Label("points", points).
					Value(
						results.GFLOPS, around(rate*float64(8+7*i)/(2*size)),
					).Number(results.Rate, rate).Number(results.CopyRate, 4100))
			}
		}
	}
	return s
}

// Latency has pieces of work by path.
func Latency() results.Source {
	s := Source(results.KindLatency)
	for i, what := range []string{"launch", "event", "copy of 8 B", "store to a peer"} {
		for k, path := range []string{"peer", "direct"} {
			s.Add(
				results.NewRow().Label("what", what).Label("path", path).Value(results.Latency, around(float64(2+i+k))),
			)
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

// Renamed has places with names of many words.
func Renamed(s results.Source) results.Source {
	for i, row := range s.Rows {
		s.Rows[i] = row.Label("what", row.Text("what")+", and then a wait for it on another stream")
	}
	return s
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
			trace.Device{Name: name, Within: 1500 * time.Nanosecond, Streams: []trace.Stream{boundary, interior}},
		)
	}
	return t
}
