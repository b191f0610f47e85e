package results_test

import (
	"math"
	"testing"

	"github.com/halox/halox/results"
)

// Records of schema 1 say what they said.
func TestUpgrade(t *testing.T) {
	for _, tc := range []struct {
		file    string
		kind    results.Kind
		rows    int
		labels  map[string]string // of the last row
		medians map[results.Metric]float64
		checked bool
	}{
		{"run", results.KindRun, 1,
			map[string]string{"solver": "heat", "grid": "512 x 512 x 512", "precision": "float64", "devices": "2", "scheme": "two-stream", "order": "left-right", "path": "peer", "iterations": "1000"},
			map[results.Metric]float64{results.Updates: 443994275043.15814, results.Step: 302.296078, results.Loop: 0.302296078}, false},
		{"exchange", results.KindExchange, 21,
			map[string]string{"points": "768", "radius": "1", "fields": "1", "path": "staged", "messages": "24", "message_bytes": "4718592", "device_bytes": "18874368"},
			map[results.Metric]float64{results.Time: 936.63905, results.CopyTime: 17.45288, results.Rate: 20.151165, results.CopyRate: 270.36177, results.Share: 0.07453408}, false},
		{"pack", results.KindPack, 24,
			map[string]string{"suite": "wu", "layout": "V", "params": "n=4096", "direction": "unpack", "memory": "device", "engine": "units", "pieces": "4096", "thread_blocks": ""},
			map[results.Metric]float64{results.Time: 70.613, results.Rate: 1900.75097, results.Share: 0.93545098}, false},
		{"pingpong", results.KindPingPong, 4,
			map[string]string{"layout": "T", "bytes": "67125248", "from": "0", "to": "1", "link": "NV18", "path": "peer", "engine": "auto", "busy": "0.5", "remote": "", "ring": ""},
			map[results.Metric]float64{results.Time: 240.614, results.CopyTime: 190.6077, results.Share: 0.7921721, results.BusyLost: 0.041197980, results.Rate: 278.97482}, false},
	} {
		t.Run(tc.file, func(t *testing.T) {
			r, err := results.Read("testdata/schema1/" + tc.file + ".json")
			if err != nil {
				t.Fatal(err)
			}
			if r.Schema != results.SchemaVersion || r.Kind != tc.kind || len(r.Rows) != tc.rows || r.Devices[0].Name != "NVIDIA H200" || r.Settings == nil && tc.kind != results.KindExchange {
				t.Fatalf("%d rows: %+v", len(r.Rows), r)
			}
			row := r.Rows[len(r.Rows)-1]
			for name, want := range tc.labels {
				if got := row.Text(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			for m, want := range tc.medians {
				if got := row.Median(m); math.Abs(got-want) > 1e-6*want {
					t.Errorf("%s is %v, want %v", m, got, want)
				}
			}
			if row.Checked != tc.checked || r.Rows[0].Checked != (tc.file == "pack") {
				t.Errorf("checked: %t first, %t last", r.Rows[0].Checked, row.Checked)
			}
		})
	}
}
