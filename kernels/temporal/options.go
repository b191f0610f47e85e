package temporal

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// Options are what passes do besides running steps. Kernels with options differ from those without: they take more
// registers, and have costs of their own.
type Options struct {
	Norms   int       // of how many last steps of each pass the norms are taken, at most MaxNorms
	Deepest int       // passes of more steps are not wanted; 0 for all
	Sums    sums.Mode // how sums of norms are taken
	Moving  bool      // whether walls may have other values at each level, see Walls
}

// MaxNorms is of how many steps of a pass norms may be taken.
const MaxNorms = 4

// More is what passes with options are given.
type More struct {
	Box   domain.Box     // of whose points norms are taken, within what is stored
	Parts []streams.Span // Parts[n] gets the norms of the last step but n, one part per thread block: reduce.NormParts
	Walls Walls

	Ghosts []GhostStore // at most two, where StoresGhosts says so

	// ReservedSMs are multiprocessors left to other kernels, by fewer blocks, where blocks stay until the pass ends.
	ReservedSMs int
}

// GhostStore is layers along the last axis of what a pass stores that it also stores into the ghosts of a neighbor.
type GhostStore struct {
	Layers domain.Box    // along the other axes all that the pass stores
	To     kernels.Array // of the neighbor, with the strides of the array that the pass stores to
	Ghosts domain.Box    // where the layers are there
}

// maxGhostStores is how many a pass has.
const maxGhostStores = 2

// wants reports whether passes of a depth are wanted.
func (o Options) wants(depth int) bool {
	return depth >= max(2, o.Norms) && (o.Deepest == 0 || depth <= o.Deepest)
}

// plain reports whether passes only run steps, between walls that do not move.
func (o Options) plain() bool { return o.Norms == 0 && !o.Moving }

// defines are the build options of kernels.
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

// check returns an error unless a pass of a depth that stores a box can be given more.
func (o Options) check(of More, stored domain.Box, depth int) error {
	switch {
	case len(of.Parts) != o.Norms:
		return fmt.Errorf(
			"temporal: room for the norms of %d steps, of passes with those of %d", len(of.Parts), o.Norms,
		)
	case o.Norms > depth:
		return fmt.Errorf("temporal: the norms of %d steps of %d", o.Norms, depth)
	case len(of.Ghosts) > maxGhostStores || len(of.Ghosts) > 0 && !o.plain():
		return fmt.Errorf("temporal: a pass with %d stores of ghosts", len(of.Ghosts))
	case o.Norms > 0 && stored.Intersect(of.Box) != of.Box:
		return fmt.Errorf("temporal: norms over the box %v of a pass that stores %v", of.Box, stored)
	}
	return nil
}

// check returns an error unless a pass over a box that stores to an array can store the ghosts.
func (g *GhostStore) check(to kernels.Array, box domain.Box, dims int) error {
	across, l := g.Layers, g.To.Layout
	across.Lo[dims-1], across.Hi[dims-1] = box.Lo[dims-1], box.Hi[dims-1]
	switch {
	case g.Layers.Empty() || box.Intersect(g.Layers) != g.Layers || across != box:
		return fmt.Errorf("temporal: layers %v of a pass that stores %v", g.Layers, box)
	case g.Ghosts.Size() != g.Layers.Size():
		return fmt.Errorf("temporal: layers %v are stored as ghosts %v", g.Layers, g.Ghosts)
	case l.Pitch != to.Layout.Pitch || l.ElementSize != to.Layout.ElementSize,
		dims == 3 && l.Plane != to.Layout.Plane:
		return errors.New("temporal: ghosts in an array of another layout than the one that a pass stores to")
	}
	return g.To.Holds(g.Ghosts)
}
