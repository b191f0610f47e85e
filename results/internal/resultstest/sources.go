package resultstest

import (
	"math"
	"testing"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
)

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
					Value(results.GFLOPS, around(rate*float64(8+7*i)/(2*size))).Number(results.Rate, rate).Number(results.CopyRate, 4100))
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
			s.Add(results.NewRow().Label("what", what).Label("path", path).Value(results.Latency, around(float64(2+i+k))))
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
