package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

// extensions are those of the files that can be drawn.
var extensions = []string{".png", ".svg", ".pdf"}

// Extensions returns the extensions of the files that can be drawn: .png, .svg and .pdf.
func Extensions() []string { return slices.Clone(extensions) }

// Write draws a chart into the file at path, whose extension names the format: .png, .svg or .pdf.
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
		return fmt.Errorf("%q is not allowed: .png, .svg or .pdf", extension)
	}
	s, err := c.layout()
	if err != nil {
		return err
	}
	canvas := newCanvas(extension, s.width, s.height)
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	s.draw(draw.Crop(page, chartMargin, -chartMargin, chartMargin, -chartMargin))
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

// newCanvas is a canvas for one of the formats.
func newCanvas(format string, width, height vg.Length) vg.CanvasWriterTo {
	return printableCanvas{formatCanvas(format, width, height)}
}

// A printableCanvas shows a question mark for what cannot be shown: no SVG may hold some of it.
type printableCanvas struct{ vg.CanvasWriterTo }

// FillString draws text.
func (c printableCanvas) FillString(face font.Face, at vg.Point, s string) {
	c.CanvasWriterTo.FillString(face, at, wording.Printable(s))
}

func formatCanvas(format string, width, height vg.Length) vg.CanvasWriterTo {
	switch format {
	case ".svg":
		return vgsvg.New(width, height)
	case ".pdf":
		return pdfCanvas{vgpdf.New(width, height)}
	default:
		const dpi = pixelsPerPoint * 72
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	}
}

// A pdfCanvas draws as the other canvases do where vgpdf does not: vgpdf turns
// images upside down and takes text for Windows-1252, byte by byte.
type pdfCanvas struct{ *vgpdf.Canvas }

// DrawImage draws img with its first row on top.
func (c pdfCanvas) DrawImage(rect vg.Rectangle, img image.Image) {
	c.Push()
	defer c.Pop()
	c.Translate(vg.Point{Y: rect.Min.Y + rect.Max.Y})
	c.Scale(1, -1)
	c.Canvas.DrawImage(rect, img)
}

// FillString draws UTF-8 text. What Windows-1252 does not have becomes a question mark, the minus sign a dash of its
// length.
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

// portableSVG mends what vgsvg writes for viewers that go by the letter: the
// images it embeds are PNG, and a font that is missing needs a stand-in.
func portableSVG(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("data:image/jpg;"), []byte("data:image/png;"))
	return bytes.ReplaceAll(data, []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
}
