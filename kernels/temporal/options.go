package temporal

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// Options are what passes do beside making steps. On GPUs kernels that do any of it are others than those that do not, as they
// take more registers, and have costs of their own.
type Options struct {
	Norms   int       // of how many last steps of each pass the norms are taken, at most MostNorms
	Deepest int       // passes of more steps are not wanted; 0 for all
	Sums    sums.Mode // how sums of norms are taken
	Moving  bool      // whether walls may have other values at each level, see Walls
}

// MostNorms is of how many steps of a pass norms may be taken.
const MostNorms = 4

// More is what passes with options are given.
type More struct {
	Box    domain.Box     // of whose points norms are taken, within what is stored
	Parts  []streams.Span // where those of the last step but n go, one part a thread block: reduce.NormParts
	Walls  Walls
	Ghosts []GhostStore // at most two, where StoresGhosts says so
	Spare  int          // multiprocessors that it leaves to other kernels, if its blocks stay until it ends: it then has fewer blocks
}

// GhostStore is layers of what a pass stores, along the last axis, that are ghosts of a neighbour too: the pass of a GPU stores them there as well.
type GhostStore struct {
	Layers domain.Box    // along the other axes all that the pass stores
	To     kernels.Array // of the neighbour, with pitch and, in three dimensions, plane as of the array that the pass stores to
	Ghosts domain.Box    // where the layers lie there
}

// mostGhostStores is how many a pass has.
const mostGhostStores = 2

// wants reports whether passes of so many steps are wanted.
func (o Options) wants(depth int) bool {
	return depth >= max(2, o.Norms) && (o.Deepest == 0 || depth <= o.Deepest)
}

// plain reports whether passes only make steps, between walls that do not move.
func (o Options) plain() bool { return o.Norms == 0 && !o.Moving }

// check returns an error unless the norms of passes of a depth can be taken of a box within the one that they store.
func (o Options) check(of More, stored domain.Box, depth int) error {
	switch {
	case len(of.Parts) != o.Norms:
		return fmt.Errorf("temporal: room for the norms of %d steps, of passes with those of %d", len(of.Parts), o.Norms)
	case o.Norms > depth:
		return fmt.Errorf("temporal: the norms of %d steps of %d", o.Norms, depth)
	case len(of.Ghosts) > mostGhostStores || len(of.Ghosts) > 0 && !o.plain():
		return fmt.Errorf("temporal: a pass with %d stores of ghosts", len(of.Ghosts))
	case o.Norms > 0 && stored.Intersect(of.Box) != of.Box:
		return fmt.Errorf("temporal: norms over the box %v of a pass that stores %v", of.Box, stored)
	}
	return nil
}

// normsOnHost are those of the levels of a pass on a host device.
type normsOnHost struct {
	box  domain.Box
	mode sums.Mode
	of   []rows.Norms // the last one's first
}

// begin forgets what was found before.
func (n *normsOnHost) begin() { clear(n.of) }

// end leaves what was found in parts.
func (n *normsOnHost) end(parts []streams.Span) {
	for i, at := range parts {
		streams.View[reduce.Norms](at.Memory.Bytes()[at.Offset:][:at.Length])[0] = n.of[i]
	}
}

// columns returns what of a row of a layer the norms are of, in points from x = lo on; n is 0 where nothing is.
func (n *normsOnHost) columns(b domain.Box, lo, hi, axis, y, at int) (first, count int) {
	p := domain.Vec{b.Lo[0], y, 0}
	p[axis] = at
	for a := 1; a <= axis; a++ {
		if p[a] < max(n.box.Lo[a], b.Lo[a]) || p[a] >= min(n.box.Hi[a], b.Hi[a]) {
			return 0, 0
		}
	}
	first = max(n.box.Lo[0], b.Lo[0], lo)
	return first - lo, max(0, min(n.box.Hi[0], b.Hi[0], hi)-first)
}
