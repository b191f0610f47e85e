package temporal

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// Options selects computations of passes besides steps. Kernels with options differ from those without: they need
// more registers and have different costs.
type Options struct {
	Norms   int       // number of last steps of each pass with norms, at most MaxNorms; default 0
	Deepest int       // largest number of steps of a pass; default 0: unlimited
	Sums    sums.Mode // how sums of norms are computed; default Reproducible
	Moving  bool      // whether boundary values may differ at each level, see Faces; default false
}

// MaxNorms is the largest number of steps of a pass with norms.
const MaxNorms = 4

// More is the additional input of passes with options.
type More struct {
	Box   domain.Box     // points included in norms, within the stored points
	Parts []streams.Span // Parts[n] gets norms of the n-th last step, one part per thread block: see NormParts
	Faces Faces          // boundary values, with option Moving; default none

	Ghosts []GhostStore // at most two, only if StoresGhosts; default none

	// ReservedSMs is the number of multiprocessors left to other kernels, by using fewer blocks, if blocks stay until
	// the pass ends. Default 0.
	ReservedSMs int
}

// GhostStore is a set of layers along the last axis that a pass also stores into the ghosts of a neighbor.
type GhostStore struct {
	Layers domain.Box    // all stored points along the other axes
	To     kernels.Array // of the neighbor, with the strides of the array that the pass stores to
	Ghosts domain.Box    // location of the layers there
}

// maxGhostStores is the largest number of ghost stores of a pass.
const maxGhostStores = 2

// wants reports whether passes of a depth are allowed.
func (o Options) wants(depth int) bool {
	return depth >= max(2, o.Norms) && (o.Deepest == 0 || depth <= o.Deepest)
}

// plain reports whether passes only run steps, with constant boundary values.
func (o Options) plain() bool { return o.Norms == 0 && !o.Moving }

// defines returns the build options of kernels.
func (o Options) defines() (all []string) {
	if o.Norms > 0 {
		all = append(append(all, option("NORMS", o.Norms)), o.Sums.Defines()...)
	}
	if o.Moving {
		all = append(all, "MOVING")
	}
	return all
}

func option(name string, value int) string { return fmt.Sprintf("%s=%d", name, value) }

// check returns an error unless a pass of a depth that stores a box supports the input.
func (o Options) check(of More, stored domain.Box, depth int) error {
	switch {
	case len(of.Parts) != o.Norms:
		return fmt.Errorf(
			"temporal: must have memory for the norms of %[2]d steps, got %[1]d", len(of.Parts), o.Norms,
		)
	case o.Norms > depth:
		return fmt.Errorf("temporal: steps with norms: must be at most the depth %d, got %d", depth,
			o.Norms)
	case len(of.Ghosts) > maxGhostStores || len(of.Ghosts) > 0 && !o.plain():
		return fmt.Errorf("temporal: ghost stores: must be at most 2, none with options, got %d", len(of.Ghosts))
	case o.Norms > 0 && stored.Intersect(of.Box) != of.Box:
		return fmt.Errorf("temporal: box of norms %v: must be within the stored box %v", of.Box, stored)
	}
	return nil
}

// check returns an error unless a pass over a box that stores to an array can store the ghosts.
func (g *GhostStore) check(to kernels.Array, box domain.Box, dims int) error {
	across, l := g.Layers, g.To.Layout
	across.Lo[dims-1], across.Hi[dims-1] = box.Lo[dims-1], box.Hi[dims-1]
	switch {
	case g.Layers.Empty() || box.Intersect(g.Layers) != g.Layers || across != box:
		return fmt.Errorf("temporal: ghost store: layers %v must be whole layers of %v", g.Layers, box)
	case g.Ghosts.Size() != g.Layers.Size():
		return fmt.Errorf("temporal: ghost store: layers %v and ghosts %v must have the same size", g.Layers, g.Ghosts)
	case l.Pitch != to.Layout.Pitch || l.ElementSize != to.Layout.ElementSize,
		dims == 3 && l.Plane != to.Layout.Plane:
		return errors.New("temporal: ghost store: array must have the layout of the array that the pass stores to")
	}
	return g.To.Holds(g.Ghosts)
}
