package plot

import (
	"errors"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Panels is plots of the same curves beside each other, with one legend: that of the
// panel with the most of them. The titles of the panels are not drawn.
type Panels struct {
	Title, Note string
	Panels      []Curves
}

func (p Panels) check() error {
	if len(p.Panels) == 0 {
		return errors.New("there are no panels")
	}
	for _, c := range p.Panels {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// legendOf returns the panel whose legend stands for all.
func (p Panels) legendOf() Curves {
	most := p.Panels[0]
	for _, c := range p.Panels {
		if len(c.Curves) > len(most.Curves) {
			most = c
		}
	}
	return most
}

func (p Panels) size() (width, height vg.Length) {
	return vg.Length(len(p.Panels))*10*vg.Centimeter + legendWidth(p.legendOf().names()), heightFor(p.legendOf().names())
}

func (p Panels) draw(c draw.Canvas) {
	c = heading{p.Title, p.Note}.draw(c)
	_, legend := p.legendOf().plot()
	c = drawBeside(c, legend, p.legendOf().names())
	width := c.Size().X / vg.Length(len(p.Panels))
	for i, panel := range p.Panels {
		plot, _ := panel.plot()
		left := vg.Length(i) * width
		drawPlot(plot, draw.Crop(c, left, left+width-c.Size().X-chartGap, 0, 0))
	}
}
