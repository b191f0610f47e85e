package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results/internal/wording"
)

// A Chart is laid out and drawn by [Write]. [New] and [Timeline] make charts; [Curves] and
// [Panels] are charts too.
type Chart interface {
	layout() (sheet, error)
}

// extensions are those of the supported formats.
var extensions = []string{".png", ".svg", ".pdf"}

// Extensions returns the extensions of the supported formats: .png, .svg and .pdf.
func Extensions() []string { return slices.Clone(extensions) }

// Write draws a chart into the file at path, whose extension selects the format: .png, .svg or .pdf.
func Write(path string, c Chart) error {
	var data bytes.Buffer
	err := Encode(&data, strings.ToLower(filepath.Ext(path)), c)
	if err == nil {
		err = files.Write(path, data.Bytes())
	}
	if err != nil {
		return fmt.Errorf("results: plot %s: %w", path, err)
	}
	return nil
}

// Encode draws a chart in the format of an extension: .png, .svg or .pdf.
func Encode(w io.Writer, extension string, c Chart) error {
	if !slices.Contains(extensions, extension) {
		return fmt.Errorf("the extension must be .png, .svg or .pdf, got %q", extension)
	}
	s, err := c.layout()
	if err != nil {
		return err
	}
	if extension == ".png" {
		img := newIndexer(s.colors).paletted(s.raster(s.pixelSize(s.pixels)))
		return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, img)
	}
	if s.pixels > 0 {
		return fmt.Errorf("only a picture of the format .png has a width in pixels, not one of %s", extension)
	}
	canvas := newCanvas(extension, s.width, s.height)
	s.paint(canvas)
	var data bytes.Buffer
	if _, err := canvas.WriteTo(&data); err != nil {
		return err
	}
	out := data.Bytes()
	if extension == ".svg" {
		out = portableSVG(out)
	}
	_, err = w.Write(out)
	return err
}

// Sized returns a chart whose picture, in the format .png, has a width in pixels.
func Sized(c Chart, pixels int) Chart { return wide{c, pixels} }

type wide struct {
	Chart
	pixels int
}

func (s wide) layout() (sheet, error) {
	all, err := s.Chart.layout()
	all.pixels = s.pixels
	return all, err
}

// pixelSize returns the size in pixels for a width in pixels; 0 for the default.
func (s sheet) pixelSize(width int) (x, y int) {
	if width == 0 {
		width = int(math.Round(s.width.Points() * pixelsPerPoint))
	}
	return width, max(1, int(math.Round(float64(s.height/s.width)*float64(width))))
}

// raster draws the sheet with a size in pixels.
func (s sheet) raster(width, height int) *image.RGBA {
	dpi := max(1, int(math.Round(float64(width)*72/s.width.Points())))
	size := vgimg.UseWH(vg.Length(width)*72/vg.Length(dpi), vg.Length(height)*72/vg.Length(dpi))
	if x, _ := s.pixelSize(0); x == width {
		size = vgimg.UseWH(s.width, s.height)
	}
	canvas := vgimg.NewWith(size, vgimg.UseDPI(dpi))
	s.paint(printableCanvas{vgimg.PngCanvas{Canvas: canvas}})
	return canvas.Image().(*image.RGBA)
}

// newCanvas is a canvas of the format .svg or .pdf.
func newCanvas(format string, width, height vg.Length) vg.CanvasWriterTo {
	if format == ".svg" {
		return printableCanvas{vgsvg.New(width, height)}
	}
	return printableCanvas{pdfCanvas{vgpdf.New(width, height)}}
}

// A printableCanvas replaces characters that cannot be displayed by question marks: SVG does not allow some
// of them.
type printableCanvas struct{ vg.CanvasWriterTo }

// FillString draws text.
func (c printableCanvas) FillString(face font.Face, at vg.Point, s string) {
	c.CanvasWriterTo.FillString(face, at, wording.Printable(s))
}

// A pdfCanvas corrects vgpdf, which turns images upside down and takes text for Windows-1252, byte by byte.
type pdfCanvas struct{ *vgpdf.Canvas }

// DrawImage draws img with its first row on top.
func (c pdfCanvas) DrawImage(rect vg.Rectangle, img image.Image) {
	c.Push()
	defer c.Pop()
	c.Translate(vg.Point{Y: rect.Min.Y + rect.Max.Y})
	c.Scale(1, -1)
	c.Canvas.DrawImage(rect, img)
}

// FillString draws UTF-8 text. Characters outside of Windows-1252 become question marks, the minus sign a
// dash of its length.
func (c pdfCanvas) FillString(face font.Face, at vg.Point, s string) {
	encoded := make([]byte, 0, len(s))
	for _, r := range s {
		if r == '−' {
			r = '–'
		}
		b, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			b = '?'
		}
		encoded = append(encoded, b)
	}
	c.Canvas.FillString(face, at, string(encoded))
}

// portableSVG corrects the output of vgsvg for strict viewers: the images it embeds are PNG, and a missing
// font needs a replacement.
func portableSVG(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("data:image/jpg;"), []byte("data:image/png;"))
	return bytes.ReplaceAll(data, []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
}
