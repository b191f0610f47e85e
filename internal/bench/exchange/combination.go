package exchange

import (
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
)

// combination is one exchange to be timed.
type combination struct {
	points, radius, fields int
	path                   p2p.Path
}

// labels begins the row of a combination.
func (c combination) labels() results.Row {
	return results.NewRow().Label("points", c.points).Label("radius", c.radius).Label("fields", c.fields).Label("path", c.path)
}

// combinations returns all of them.
func (o *Options) combinations() (all []combination) {
	for _, n := range o.Points {
		for _, r := range o.Radius {
			for _, f := range o.Fields {
				for _, p := range o.Paths {
					all = append(all, combination{n, r, f, p2p.Path(p)})
				}
			}
		}
	}
	return all
}
