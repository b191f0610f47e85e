package halo

import (
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
)

// Cutting says how a grid is cut over the devices of a session. All but Size may be
// left out.
type Cutting struct {
	Size     []int      // points along x, y and maybe z, see domain.NewGrid
	Periodic [3]bool    // which axes are
	Fields   []Spec     // what is exchanged in a step, which says how wide the ghosts are and what messages take
	Parts    domain.Vec // subdomains along each axis, 0 counts as 1; all 0: by domain.AutoParts, for the widest ghosts of the fields
	Devices  int        // the first so many of the session's take part; 0: as many as Parts has subdomains, or all
	Path     p2p.Path   // what messages are to travel by, see Placement; "" is p2p.Auto
}

// width returns the widest ghosts of the fields, on each side.
func (c Cutting) width() (w domain.Radius) {
	for _, f := range c.Fields {
		w = wider(w, f.filled().Width)
	}
	return w
}

// path returns the path that is wanted.
func (c Cutting) path() p2p.Path {
	if c.Path == "" {
		return p2p.Auto
	}
	return c.Path
}

// withPath gives the path to a placement that the cutting has led to.
func (c Cutting) withPath(p *Placement, err error) (*Placement, error) {
	if err != nil {
		return nil, err
	}
	p.Path = c.Path
	return p, nil
}

// check returns an error if what is said beside the size and the parts makes no sense.
func (c Cutting) check(g domain.Grid) error {
	for i, f := range c.Fields {
		if err := f.checkIn(g); err != nil {
			return optionError("Cutting.Fields", "field %d, %q: %w", i, f.Name, err)
		}
	}
	if path := c.path(); path != p2p.Auto && !slices.Contains(p2p.Paths(), path) {
		return optionError("Cutting.Path", "%q is no path: %s", path, p2p.Choices(p2p.LinksFirst()))
	}
	return nil
}
