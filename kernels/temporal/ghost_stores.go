package temporal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
)

// storesGhosts reports whether the kernel has option GHOST_STORES. Those that have not lack registers for it.
func (s shape) storesGhosts() bool {
	switch s.name {
	case "pass_stars", "pass_sums":
		return false
	case "pass_strips":
		return s.depth*s.blocks < 24
	}
	return true
}

// ghostStoreArgs is struct GhostStore of the kernels.
type ghostStoreArgs struct {
	Shift       int64
	First, Last int32
}

// ghostPassArgs is struct Pass of kernels that store ghosts.
type ghostPassArgs struct {
	passArgs `cu:"inline"`
	Ghosts   [mostGhostStores]ghostStoreArgs
}

// withGhostStores returns the program of passes that store ghosts.
func withGhostStores(p kernels.Program) kernels.Program {
	p.Defines = append(slices.Clone(p.Defines), "GHOST_STORES")
	p.Mirrors = []kernels.Mirror{{Name: "Pass", Value: ghostPassArgs{}}, {Name: "GhostStore", Value: ghostStoreArgs{}}}
	return p
}

// check returns an error unless a pass over a box that stores to an array can store the ghosts.
func (g *GhostStore) check(to kernels.Array, box domain.Box, dims int) error {
	across := g.Layers
	across.Lo[dims-1], across.Hi[dims-1] = box.Lo[dims-1], box.Hi[dims-1]
	switch {
	case g.Layers.Empty() || box.Intersect(g.Layers) != g.Layers || across != box:
		return fmt.Errorf("temporal: layers %v of a pass that stores %v", g.Layers, box)
	case g.Ghosts.Size() != g.Layers.Size():
		return fmt.Errorf("temporal: layers %v are stored as ghosts %v", g.Layers, g.Ghosts)
	case g.To.Layout.Pitch != to.Layout.Pitch || dims == 3 && g.To.Layout.Plane != to.Layout.Plane || g.To.Layout.ElementSize != to.Layout.ElementSize:
		return errors.New("temporal: ghosts in an array of another layout than the one that a pass stores to")
	}
	return g.To.Holds(g.Ghosts)
}

// ghostArgs adds the ghosts to what a kernel is given that stores a box to an array.
func ghostArgs(args passArgs, to kernels.Array, box domain.Box, dims int, ghosts []GhostStore) ([]byte, error) {
	all := ghostPassArgs{passArgs: args}
	for i, g := range ghosts {
		shift := int64(address(g.To, g.Ghosts.Lo) - address(to, g.Layers.Lo))
		if shift%16 != 0 {
			return nil, errors.New("temporal: ghosts that are not aligned as what the pass stores")
		}
		first := g.Layers.Lo[dims-1] - box.Lo[dims-1]
		all.Ghosts[i] = ghostStoreArgs{shift, int32(first), int32(first + g.Layers.Size()[dims-1])}
	}
	return launch.Argument(&all), nil
}
