package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/results/internal/resultstest"
)

// unitPicture is a field on the points of the unit box that are not on its walls.
func unitPicture(nx, ny int, at func(x, y float64) float64) Picture {
	dx, dy := 1/float64(nx+1), 1/float64(ny+1)
	return Picture{
		Title: "A field", XLabel: "x", YLabel: "y",
		NX: nx, NY: ny, X0: dx, Y0: dy, DX: dx, DY: dy,
		At: func(ix, iy int) float64 { return at(float64(ix+1)*dx, float64(iy+1)*dy) },
	}
}

func TestPictureGolden(t *testing.T) {
	sine := unitPicture(128, 128, func(x, y float64) float64 {
		return math.Sin(math.Pi*x) * math.Sin(2*math.Pi*y)
	})
	constant := unitPicture(16, 16, func(x, y float64) float64 { return 3.5 })
	flat := unitPicture(96, 24, func(x, y float64) float64 {
		if x < 0.1 && y < 0.4 {
			return math.NaN()
		}
		return 1e-6 * (x + y)
	})
	flat.DY /= 4
	for name, picture := range map[string]Picture{"sine": sine, "constant": constant, "flat": flat} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := write(t, picture, ".png")
			want := resultstest.Golden(t, "picture-"+name+".png", got)
			resultstest.Alike(t, resultstest.Decode(t, got), resultstest.Decode(t, want))
		})
	}
}

// write makes a picture and gives back the bytes of its file.
func write(t *testing.T, picture Picture, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "picture"+format)
	if err := WritePicture(path, picture); err != nil {
		t.Fatal(err)
	}
	return resultstest.ReadFile(t, path)
}

func TestPictureFormats(t *testing.T) {
	ramp := unitPicture(8, 8, func(x, y float64) float64 { return x - y })
	for format, magic := range map[string]string{".svg": "<?xml", ".pdf": "%PDF"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			if data := write(t, ramp, format); !bytes.HasPrefix(data, []byte(magic)) {
				t.Errorf("the file begins with %q, want %q", data[:8], magic)
			}
		})
	}
	svg := string(write(t, ramp, ".svg"))
	if strings.Contains(svg, "image/jpg") || !strings.Contains(svg, "Liberation Sans,Arial") {
		t.Error("the SVG names its images JPEG or has no second choice of a font")
	}
}

// Nothing that a field can hold or be shaped like may break a picture.
func TestPictureOfOddFields(t *testing.T) {
	blank := func(v float64) func(x, y float64) float64 {
		return func(x, y float64) float64 { return v }
	}
	spread := func(lo, hi float64) func(x, y float64) float64 {
		return func(x, y float64) float64 { return lo*(1-x) + hi*x }
	}
	for _, tc := range []struct {
		name    string
		picture Picture
	}{
		{"one point", unitPicture(1, 1, blank(1))},
		{"one row", unitPicture(500, 1, spread(0, 1))},
		{"one column", unitPicture(1, 500, spread(0, 1))},
		{"nothing finite", unitPicture(3, 3, blank(math.NaN()))},
		{"infinite", unitPicture(3, 3, blank(math.Inf(-1)))},
		{"all floats", unitPicture(3000, 3, spread(-math.MaxFloat64, math.MaxFloat64))},
		{"denormal", unitPicture(3, 3, spread(0, math.SmallestNonzeroFloat64))},
		{"neighbours", unitPicture(3, 3, spread(1, math.Nextafter(1, 2)))},
		{"long title", func() Picture {
			p := unitPicture(1, 9, blank(0))
			p.Title = strings.Repeat("λ ", 100)
			return p
		}()},
		{"no words", Picture{NX: 2, NY: 2, DX: 1, DY: 1, Values: []float64{0, 1, 2, 3}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			write(t, tc.picture, ".svg") // the quickest to write
		})
	}
}

// The corners of a field of two by two points have their colours in the corners
// of the map, the first row at the bottom.
func TestPictureUp(t *testing.T) {
	img := resultstest.RGBA(resultstest.Decode(t, write(t, Picture{
		NX: 2, NY: 2, DX: 1, DY: 1, Values: []float64{0, 1, math.NaN(), 1},
	}, ".PNG")))
	size := img.Bounds().Size()
	x0, x1 := size.X/4, size.X/2
	y0, y1 := size.Y*3/4, size.Y/4
	for _, tc := range []struct {
		name string
		x, y int
		want color.RGBA
	}{
		{"lowest, lower left", x0, y0, color.RGBA{0x44, 0x01, 0x54, 0xff}},
		{"highest, lower right", x1, y0, color.RGBA{0xfd, 0xe7, 0x25, 0xff}},
		{"not finite, upper left", x0, y1, color.RGBA{0x9a, 0x9a, 0x9a, 0xff}},
		{"highest, upper right", x1, y1, color.RGBA{0xfd, 0xe7, 0x25, 0xff}},
	} {
		if got := img.RGBAAt(tc.x, tc.y); resultstest.Far(got.R, tc.want.R) || resultstest.Far(got.G, tc.want.G) || resultstest.Far(got.B, tc.want.B) {
			t.Errorf("%s: the colour is %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestPictureRefuses(t *testing.T) {
	good := Picture{NX: 2, NY: 1, DX: 1, DY: 1, Values: []float64{0, 1}}
	change := func(edit func(p *Picture)) Picture {
		p := good
		edit(&p)
		return p
	}
	for _, tc := range []struct {
		name, file string
		picture    Picture
		want       string
	}{
		{"another format", "p.gif", good, `its ending is ".gif", want one of .png, .svg, .pdf`},
		{"no ending", "p", good, "want one of .png, .svg, .pdf"},
		{"no points", "p.png", change(func(p *Picture) { p.NX = 0 }), "0 x 1 points"},
		{"too few values", "p.png", change(func(p *Picture) { p.NY = 2 }), "2 values, want 2 x 2"},
		{"no values", "p.png", change(func(p *Picture) { p.Values = nil }), "either Values or At"},
		{"no spacing", "p.png", change(func(p *Picture) { p.DY = 0 }), "spacing is 1, 0"},
		{"spacing not a number", "p.png", change(func(p *Picture) { p.DX = math.NaN() }), "cannot be drawn"},
		{"lost in rounding", "p.png", change(func(p *Picture) { p.X0 = 1e30 }), "cannot be drawn"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, tc.file)
			resultstest.WantError(t, WritePicture(path, tc.picture), "write picture", path, tc.want)
			if names := resultstest.Files(t, dir); len(names) != 0 {
				t.Errorf("the folder holds %v, want nothing", names)
			}
		})
	}
}

func BenchmarkWritePicture(b *testing.B) {
	for _, n := range []int{256, 4096, 16384} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			picture := unitPicture(n, n, func(x, y float64) float64 { return x * y })
			path := filepath.Join(b.TempDir(), "p.png")
			for b.Loop() {
				if err := WritePicture(path, picture); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
