package plot

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/internal/resultstest"
)

// lines returns n curves, every second one the dashed twin of the one before it.
func lines(n int) Curves {
	c := Curves{
		Title: "Two lines\nof a title", XLabel: "matrix size", YLabel: "a rather long label of what is shown (GB/s)",
	}
	for i := range n {
		y := float64(int(1) << i)
		c.Curves = append(c.Curves, Curve{
			Name: fmt.Sprintf("curve %d", i+1), X: []float64{1024, 2048, 3072, 4096}, Y: []float64{
				y, 1.2 * y, 1.3 * y, 1.25 * y,
			},
			Dashed: i%2 == 1, Color: fmt.Sprint(i / 2),
		})
	}
	return c
}

func writeCurves(t *testing.T, c Curves, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "curves"+format)
	test.Check(t, Write(path, c))
	return resultstest.ReadFile(t, path)
}

// Marks and dashes tell curves apart.
func TestCurvesGolden(t *testing.T) {
	for i, two := range marks {
		if two[0] == two[1] {
			t.Errorf("curves of color %d share a mark", i)
		}
	}
	for name, n := range map[string]int{"few": 4, "many": 9} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "curves-"+name, lines(n))
		})
	}
}

func TestCurvesFormats(t *testing.T) {
	for format, magic := range map[string]string{".svg": "<?xml", ".PDF": "%PDF"} {
		if data := writeCurves(t, lines(2), format); !bytes.HasPrefix(data, []byte(magic)) {
			t.Errorf("the file begins with %q, want %q", data[:8], magic)
		}
	}
}

// Axes have numbers whatever their range: powers of ten, some of their multiples, or
// all of them.
func TestCurvesHaveNumbers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		x     []float64
		bytes bool
		want  []string
		marks bool // the points are measurements
	}{
		{"decades", []float64{0.03, 40}, false, []string{"0.1", "1", "10"}, false},
		{"a decade", []float64{16, 4096}, false, []string{"20", "50", "100", "200", "500", "1000", "2000"}, false},
		{"less", []float64{1024, 4096}, false, []string{"2000", "3000", "4000"}, false},
		{"one point", []float64{1}, false, []string{"0.5", "1", "2"}, false},
		{"places", []float64{64, 128, 256, 768}, false, []string{"64", "128", "256", "768"}, true},
		{"places too close", []float64{64, 65, 256, 768}, false, []string{"64", "256", "768"}, true},
		{"places in bytes", []float64{1024, 3072, 1 << 20}, true, []string{"1 KiB", "3 KiB", "1 MiB"}, true},
		{"parts of places", []float64{0.5, 2, 8}, false, []string{"1", "2", "5"}, false},
		{"bytes", []float64{512, 4096}, true, []string{"512 B", "1 KiB", "2 KiB", "4 KiB"}, false},
		{"many bytes", []float64{1024, 1 << 28}, true, []string{"1 KiB", "32 KiB", "1 MiB", "32 MiB"}, false},
		{"as many as there are", []float64{1, 1 << 62}, true, []string{"1 B", "1 KiB", "1 TiB", "1 EiB"}, false},
		{"few bytes", []float64{1100, 2000}, true, []string{"2000"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Curves{
				XLabel: "x", YLabel: "y", BytesX: tc.bytes,
				Curves: []Curve{{Name: "c", X: tc.x, Y: make([]float64, len(tc.x)), Plain: !tc.marks}},
			}
			for i := range tc.x {
				c.Curves[0].Y[i] = 7
			}
			svg := string(writeCurves(t, c, ".svg"))
			for _, want := range tc.want {
				if !strings.Contains(svg, ">"+want+"</text>") {
					t.Errorf("no number %s in the plot", want)
				}
			}
		})
	}
}

// Bounds have one color: it is their dashes that tell them apart.
func TestBoundsAreToldApart(t *testing.T) {
	c := lines(4)
	for i := range c.Curves {
		c.Curves[i].Bound = true
	}
	dashes := map[string]bool{}
	for _, found := range regexp.MustCompile(`stroke-dasharray:[^;"]*`).FindAllString(
		string(writeCurves(t, c, ".svg")), -1,
	) {
		dashes[found] = true
	}
	if len(dashes) != 4 {
		t.Errorf("%d of 4 bounds: %v", len(dashes), dashes)
	}
}

func TestCurveErrors(t *testing.T) {
	curve := func(x, y []float64) Curves {
		return Curves{Curves: []Curve{{Name: "c", X: x, Y: y}}}
	}
	for _, tc := range []struct {
		name, file string
		curves     Curves
		want       string
	}{
		{"another format", "c.gif", lines(1), `must be .png, .svg or .pdf, got ".gif"`},
		{"no curves", "c.png", Curves{}, "must have at least one curve"},
		{"no points", "c.png", curve(nil, nil), `curve "c": must have equally many x and y, at least one, got 0 and 0`},
		{"too few", "c.png", curve([]float64{1, 2}, []float64{1}), "at least one, got 2 and 1"},
		{"zero", "c.png", curve([]float64{1, 2}, []float64{1, 0}), "on logarithmic axes must be positive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, tc.file)
			resultstest.WantError(t, Write(path, tc.curves), "plot", path, tc.want)
			if names := resultstest.Files(t, dir); len(names) != 0 {
				t.Errorf("the folder holds %v", names)
			}
		})
	}
}
