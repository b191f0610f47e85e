package drawing

import "github.com/halox/halox/results/plot"

// plotFlags are the flags of halox plot.
type plotFlags struct {
	out, kind string
	x, y      string
	by, where []string
	peaks     map[string]string
	size      int

	field, slice, line, title, label, colors, span, run string
	perSecond                                           float64
}

// write writes a chart in the size that was asked for.
func (f *plotFlags) write(c plot.Chart, err error) error {
	if err != nil {
		return err
	}
	if f.size > 0 {
		c = plot.Sized(c, f.size)
	}
	return plot.Write(f.out, c)
}
