package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/internal/resultstest"
)

// unitPicture is a field on the points of the unit box that are not on its walls.
func unitPicture(nx, ny int, at func(x, y float64) float64) Picture {
	dx, dy := 1/float64(nx+1), 1/float64(ny+1)
	p := Picture{Title: "A field", XLabel: "x", YLabel: "y", NX: nx, NY: ny, X0: dx, Y0: dy, DX: dx, DY: dy}
	for iy := range ny {
		for ix := range nx {
			p.Values = append(p.Values, at(float64(ix+1)*dx, float64(iy+1)*dy))
		}
	}
	return p
}

func TestPictureGolden(t *testing.T) {
	sine := unitPicture(128, 128, func(x, y float64) float64 {
		return math.Sin(math.Pi*x) * math.Sin(2*math.Pi*y)
	})
	flat := unitPicture(96, 24, func(x, y float64) float64 {
		if x < 0.1 && y < 0.4 {
			return math.NaN()
		}
		return 1e-6 * (x + y)
	})
	flat.DY /= 4
	few := unitPicture(12, 8, func(x, y float64) float64 { return x*y*20 - 5 })
	few.Sides = [4]Side{
		{few.DX / 2, slices.Repeat([]float64{-5}, 8)}, {}, {few.DY / 2, slices.Repeat([]float64{-5}, 12)}, {few.DY / 2, nil},
	}
	for ix := range 12 {
		few.Sides[3].Values = append(few.Sides[3].Values, float64(ix+1)*few.DX*20-5)
	}
	few.Label, few.Colors, few.Range = "temperature (K)", "blue-red", &Range{-10, 10}
	sine.Label, sine.Colors = "u", "black-body"
	for name, picture := range map[string]Picture{"sine": sine, "flat": flat, "few": few} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "picture-"+name, picture)
		})
	}
}

// write returns the file of a picture.
func write(t *testing.T, picture Picture, format string) []byte {
	t.Helper()
	var data bytes.Buffer
	test.Check(t, Encode(&data, format, picture))
	return data.Bytes()
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

// Pictures support all values and shapes of fields.
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
		{"neighbors", unitPicture(3, 3, spread(1, math.Nextafter(1, 2)))},
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

// The corners of a field of two by two points have their palette in the corners
// of the map, the first row at the bottom.
func TestPictureUp(t *testing.T) {
	img := rgba(decode(t, write(t, Picture{
		NX: 2, NY: 2, DX: 1, DY: 1, Values: []float64{0, 1, math.NaN(), 1},
	}, ".png")))
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
		if got := img.RGBAAt(tc.x, tc.y); far(got.R, tc.want.R) || far(got.G, tc.want.G) ||
			far(got.B, tc.want.B) {
			t.Errorf("%s: the color is %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestPictureErrors(t *testing.T) {
	good := Picture{NX: 2, NY: 1, DX: 1, DY: 1, Values: []float64{0, 1}}
	change := func(edit func(p *Picture)) Picture {
		p := good
		edit(&p)
		return p
	}
	for _, tc := range []struct {
		name, format string
		picture      Picture
		want         string
	}{
		{"another format", ".gif", good, `must be .png, .svg or .pdf, got ".gif"`},
		{"no ending", "", good, `must be .png, .svg or .pdf, got ""`},
		{"no points", ".png", change(func(p *Picture) { p.NX = 0 }), "got 0 x 1"},
		{"too few values", ".png", change(func(p *Picture) { p.NY = 2 }), "must have 2 x 2 values, got 2"},
		{"no values", ".png", change(func(p *Picture) { p.Values = nil }), "got 0"},
		{"no spacing", ".png", change(func(p *Picture) { p.DY = 0 }), "spacing must be positive, got 1, 0"},
		{"spacing not a number", ".png", change(func(p *Picture) { p.DX = math.NaN() }), "cannot be drawn"},
		{"a side", ".png", change(func(p *Picture) { p.Sides[2].Values = []float64{1} }), "side 2 must have a width of at least 0 and no or 2 values, got 0 and 1"},
		{"colors", ".png", change(func(p *Picture) { p.Colors = "pink" }), `the colors must be viridis, black-body, blue-red, got "pink"`},
		{"range", ".png", change(func(p *Picture) { p.Range = &Range{1, 1} }), "the range must be finite and ascending, got 1 to 1"},
		{"lost in rounding", ".png", change(func(p *Picture) { p.X0 = 1e30 }), "cannot be drawn"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var data bytes.Buffer
			resultstest.WantError(t, Encode(&data, tc.format, tc.picture), tc.want)
			if data.Len() != 0 {
				t.Errorf("%d bytes were written", data.Len())
			}
		})
	}
}

func BenchmarkPicture(b *testing.B) {
	for _, n := range []int{256, 4096, 16384} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			picture := unitPicture(n, n, func(x, y float64) float64 { return x * y })
			for b.Loop() {
				test.Check(b, Encode(io.Discard, ".png", picture))
			}
		})
	}
}

// The scale runs from dark to light without a step back, and through no gray.
func TestViridis(t *testing.T) {
	colors := shades(0, 256)
	last := -1.0
	for i, c := range colors {
		light := 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
		if light < last {
			t.Errorf("color %d has lightness %g, after %g", i, light, last)
		}
		last = light
		if spread := max(c.R, c.G, c.B) - min(c.R, c.G, c.B); spread < 32 {
			t.Errorf("color %d, %v, is nearly gray", i, c)
		}
	}
}

// linear is the intensity of an sRGB shade, from 0 to 1.
func linear(shade uint8) float64 { return math.Pow(float64(shade)/255, 2.2) }

// Strips of boundary values surround the cells, the lower and upper ones with the corners; the range spans all of it.
func TestPictureSides(t *testing.T) {
	p := Picture{NX: 1, NY: 2, DX: 2, DY: 1, X0: 1, Y0: 0.5, Values: []float64{3, 4}, Colors: "blue-red", Sides: [4]Side{
		{1, []float64{1, 2}}, {0, nil}, {1, []float64{-7}}, {1e-9, []float64{8}},
	}}
	if s := p.Span(); s != (Range{-8, 8}) {
		t.Errorf("the values span %v", s)
	}
	if s, note := p.shown(); s != (span{-8, 8}) || note != "" {
		t.Errorf("the colors span %v, %q", s, note)
	}
	p.Range = &Range{math.NaN(), 3.5}
	if s, note := p.shown(); s != (span{-7, 3.5}) || note != "values from −7.00 to 8.00" {
		t.Errorf("the colors span %v, %q", s, note)
	}
	if x, y := p.spanX(), p.spanY(); x != (span{-1, 2}) || y != (span{-1, 2 + 1e-9}) {
		t.Errorf("the axes span %v and %v", x, y)
	}
	columns, rows := cellsOf(6, p.NX, p.DX, p.Sides[0], p.Sides[1]), cellsOf(7, p.NY, p.DY, p.Sides[2], p.Sides[3])
	var got []float64
	for _, iy := range rows {
		got = append(got, p.at(columns[0], iy), p.at(columns[5], iy))
	}
	if want := []float64{-7, -7, -7, -7, 1, 3, 1, 3, 2, 4, 2, 4, 8, 8}; !slices.Equal(got, want) {
		t.Errorf("the first and last column are %v, want %v", got, want)
	}
}
