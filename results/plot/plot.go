// Package plot draws records, traces and fields as PNG, SVG or PDF.
//
// [New] makes a [Chart] of the rows of records, by the kinds that [Kinds] lists. [Curves] and [Panels] are charts of
// any numbers, [Timeline] is that of a trace, and a [Picture] is a heat map of a plane of a field. [Write] draws a
// chart into a file.
package plot

import (
	"fmt"
	"slices"

	"github.com/halox/halox/results"
)

// Options change a plot. Empty options use the defaults of the kind.
type Options struct {
	X, Y  string              // names of labels, parameters or metrics; default by kind
	By    []string            // labels that distinguish curves; default by kind
	Where []results.Condition // conditions on rows; default none
	Peaks map[string]float64  // for a roofline: peak GFLOP/s by name of the line; default none
}

// New plots records. kind is one of [Kinds]; "" is the default plot of the records, which must have the same
// kind. Records of different machines never share a curve. The error is [ErrNothing] if no row has the
// quantities of the plot.
func New(kind string, o Options, all ...results.Source) (Chart, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("results: plot: %w: no records", ErrNothing)
	}
	c, err := newChart(kind, o, all)
	if err != nil {
		return nil, fmt.Errorf("results: plot: %w", err)
	}
	return c, nil
}

func newChart(kind string, o Options, all []results.Source) (Chart, error) {
	k, err := findKind(kind, all)
	if err != nil {
		return nil, err
	}
	if err := k.takes(o); err != nil {
		return nil, err
	}
	s, err := selectRows(all, o.Where)
	if err != nil {
		return nil, err
	}
	switch k.form {
	case asHistory:
		return s.history(k)
	case asMeasures:
		return s.measures(k)
	}
	if len(s.rows) == 0 {
		return nil, fmt.Errorf("%w: no rows", ErrNothing)
	}
	s.leaveOutEmpty()
	if k, err = s.asked(k, o); err != nil {
		return nil, err
	}
	switch k.form {
	case asMatrix:
		return s.matrix(k)
	case asScaling:
		return s.scaling(k)
	case asRoofline:
		return s.roofline(k, o.Peaks)
	}
	return s.plane(k)
}

// takes returns an error for options that the kind does not support.
func (k kind) takes(o Options) error {
	var own string
	switch {
	case (k.form == asHistory || k.form == asMeasures) && (o.X != "" || o.Y != "" || o.By != nil):
		own = "X, Y and curves"
	case k.form == asMatrix && o.X != "":
		own = "X"
	case k.form == asScaling && o.Y != "":
		own = "Y"
	case k.form == asRoofline && (o.X != "" || o.Y != ""):
		own = "X and Y"
	case k.form != asRoofline && o.Peaks != nil:
		return fmt.Errorf("plot %s does not support peaks, only roofline does", k.name)
	default:
		return nil
	}
	return fmt.Errorf(
		"plot %s has fixed %s: do not set them, or choose another kind, such as curves or bars", k.name, own,
	)
}

// asked returns the kind with the options in place of its defaults. A label named in the options is not
// restricted to one value.
func (s *selection) asked(k kind, o Options) (kind, error) {
	for _, label := range o.By {
		if err := results.HaveLabel(s.sources, label); err != nil {
			return k, err
		}
	}
	if o.X != "" {
		k.x = []string{o.X}
	}
	if o.Y != "" {
		k.y = []results.Metric{results.Metric(o.Y)}
	}
	if o.By != nil {
		k.by, k.asked = o.By, true
	}
	k.hold = slices.DeleteFunc(slices.Clone(k.hold), func(l results.Label) bool {
		return slices.Contains(o.By, l.Name) || l.Name == o.X ||
			slices.ContainsFunc(o.Where, func(c results.Condition) bool { return c.Label == l.Name })
	})
	s.hold(k.hold)
	return k, nil
}
