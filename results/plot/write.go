package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/internal/files"
)

// Write draws a chart into the file at path, whose extension picks the format: .png, .svg
// or .pdf.
func Write(path string, c Chart) error {
	data, err := encodeChart(strings.ToLower(filepath.Ext(path)), c)
	if err == nil {
		err = files.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("results: plot %s: %w", path, err)
	}
	return nil
}

func encodeChart(format string, c Chart) ([]byte, error) {
	if !slices.Contains(formats, format) {
		return nil, fmt.Errorf("%q is not allowed: .png, .svg or .pdf", format)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	width, height := c.size()
	canvas := newCanvas(format, width, height)
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	c.draw(draw.Crop(page, chartMargin, -chartMargin, chartMargin, -chartMargin))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	if format == ".svg" {
		return portableSVG(out.Bytes()), err
	}
	return out.Bytes(), err
}

// formats are the extensions of the files that can be drawn.
var formats = []string{".png", ".svg", ".pdf"}

// WritePicture draws p into the file at path, whose ending picks the format:
// .png, .svg or .pdf. Both axes have one scale, but for planes longer than eight
// times their width, which are widened to stay readable. A plane with more points
// than pixels is averaged. The colours span the smallest to the largest finite
// value; what is not finite is grey, and so is a pixel that averages over it.
func WritePicture(path string, p Picture) error {
	data, err := p.encode(strings.ToLower(filepath.Ext(path)))
	if err == nil {
		err = files.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("results: write picture %s: %w", path, err)
	}
	return nil
}

func (p *Picture) encode(format string) ([]byte, error) {
	if !slices.Contains(formats, format) {
		return nil, fmt.Errorf("its ending is %q, want one of %s", format, strings.Join(formats, ", "))
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	drawn := newHeatMap(p)
	canvas := newCanvas(format, drawn.width, drawn.height)
	drawn.draw(draw.New(canvas))
	var data bytes.Buffer
	if _, err := canvas.WriteTo(&data); err != nil {
		return nil, err
	}
	if format == ".svg" {
		return portableSVG(data.Bytes()), nil
	}
	return data.Bytes(), nil
}
