package plot

import (
	"bytes"
	"image"
	"image/draw"
	_ "image/png"
	"math"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
)

// golden compares a chart with the picture of that name.
func golden(t *testing.T, name string, c Chart) {
	t.Helper()
	var data bytes.Buffer
	test.Check(t, Encode(&data, ".png", c))
	alike(t, decode(t, data.Bytes()), decode(t, resultstest.Golden(t, name+".png", data.Bytes())))
}

// decode returns the picture of a PNG file.
func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(data))
	test.Check(t, err)
	return img
}

// alike fails unless two pictures have one size and all but one in a thousand
// of their bytes, a color of a pixel each, are within a few shades: how glyphs
// and palette round differs between processors.
func alike(t *testing.T, got, want image.Image) {
	t.Helper()
	if got.Bounds() != want.Bounds() {
		t.Fatalf("the picture covers %v, want %v", got.Bounds(), want.Bounds())
	}
	a, b := rgba(got), rgba(want)
	wrong := 0
	for i, shade := range b.Pix {
		if far(a.Pix[i], shade) {
			if wrong++; wrong == 1 {
				t.Logf("first at pixel (%d, %d)", i%a.Stride/4, i/a.Stride)
			}
		}
	}
	if allowed := len(b.Pix) / 1000; wrong > allowed {
		t.Errorf("%d bytes differ from the golden picture, allowed are %d", wrong, allowed)
	}
}

// far reports whether two shades differ by more than rounding.
func far(a, b uint8) bool { return max(a, b)-min(a, b) > 8 }

// rgba returns a picture by its pixels.
func rgba(img image.Image) *image.RGBA {
	plain := image.NewRGBA(img.Bounds())
	draw.Draw(plain, plain.Rect, img, img.Bounds().Min, draw.Src)
	return plain
}

// carried is the rate of a link that takes 4 us to begin.
func carried(bytes, peak float64) float64 { return bytes / (4 + bytes/peak/1e3) / 1e3 }

// sampleLinks has four GPUs, the last of which hangs on another kind of link.
func sampleLinks() results.Source {
	s := resultstest.Source(results.KindLinks)
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
						Value(results.Rate, resultstest.Around(carried(bytes, peak))).Number(results.PeerRate, carried(bytes, 400)))
				}
			}
		}
	}
	return s
}

// sampleScaling has one scheme over the number of GPUs, for two sizes.
func sampleScaling() results.Source {
	s := resultstest.Source(results.KindScaling)
	for _, points := range []float64{256, 512} {
		for _, devices := range []float64{1, 2, 4, 8} {
			s.Add(results.NewRow().Label("scheme", "fused").Label("points", points).Label("devices", devices).
				Value(results.Step, resultstest.Around(1000/devices+20*math.Log2(devices)*512/points)))
		}
	}
	return s
}

// sampleCheckpoints has steps with checkpoints, and checkpoints written and read.
func sampleCheckpoints() results.Source {
	s := resultstest.Source(results.KindCheckpoint)
	for _, points := range []float64{256, 512} {
		row := results.NewRow().Label("points", points).Label("devices", 2)
		for i, scheme := range []string{"fused", "blocked"} {
			s.Add(row.Label("what", "steps").Label("scheme", scheme).Value(results.Slowdown, resultstest.Around(0.02+0.01*float64(i))))
		}
		for i, what := range []string{"write", "read"} {
			s.Add(row.Label("what", what).Value(results.Rate, resultstest.Around(points/100+float64(i))))
		}
	}
	return s
}

// sampleRates has sweeps with their operations and the bytes that they move.
func sampleRates() results.Source {
	s := resultstest.Source(results.KindSweep)
	for i, stencil := range []string{"7-point", "13-point", "27-point"} {
		for _, size := range []float64{4, 8} {
			for _, points := range []float64{64, 512} {
				rate := (4000 - 300*float64(i)) * points / (points + 20)
				s.Add(results.NewRow().Label("stencil", stencil).Label("precision", map[float64]string{4: "float32", 8: "float64"}[size]).Label("points", points).
					Value(
						results.GFLOPS, resultstest.Around(rate*float64(8+7*i)/(2*size)),
					).Number(results.Rate, rate).Number(results.CopyRate, 4100))
			}
		}
	}
	return s
}

// sampleLatency has pieces of work by path.
func sampleLatency() results.Source {
	s := resultstest.Source(results.KindLatency)
	for i, what := range []string{"launch", "event", "copy of 8 B", "store to a peer"} {
		for k, path := range []string{"peer", "direct"} {
			s.Add(
				results.NewRow().Label("what", what).Label("path", path).Value(results.Latency, resultstest.Around(float64(2+i+k))),
			)
		}
	}
	return s
}

// renamed has places with names of many words.
func renamed(s results.Source) results.Source {
	for i, row := range s.Rows {
		s.Rows[i] = row.Label("what", row.Text("what")+", and then a wait for it on another stream")
	}
	return s
}
