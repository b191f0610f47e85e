package step

import (
	"errors"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// TileRank is one device's part of steps whose field stays on the multiprocessors. Step n reads
// Fields[(n-1)%2] and writes Fields[n%2].
type TileRank struct {
	Device *streams.Device
	Fields [2]kernels.Array // of one layout
	Stores []kernels.GhostStore
}

// ErrNoTiles says that the fields do not fit on the multiprocessors, or that tiles cannot exchange
// what is stored.
var ErrNoTiles = errors.New("step: the fields do not stay on the multiprocessors")

// sideStore is where the points at a side go: ghosts at a side of a rank. store is its
// place in the rank's list; -1 where they go nowhere.
type sideStore struct {
	store, to int
	high      bool
}

func side(high bool) int {
	if high {
		return 1
	}
	return 0
}

// tileRanks is ranks that make steps together, as tiles that stay on the multiprocessors.
type tileRanks struct {
	resources streams.Resources
	compiler  *kernels.Compiler
	stencil   stencil.Stencil
	real      kernels.Real
	mode      sums.Mode
	ranks     []TileRank
	limit     time.Duration
	flags     *flags.Network // a line for each neighbour, counting launches of its tiles that store into ghosts here
	inbox     []*streams.Memory
	checks    []checkRoom // by rank; nil before PrepareChecks
}

// TileGroup is the ranks that make steps together with an exchange after each.
type TileGroup struct {
	tileRanks
	boxes []tiling // by rank
	sides [][3][2]sideStore
}

// maxFaces is how many sides a rank has.
const maxFaces = 6

// Tiles returns how many thread blocks a rank has, a tile each.
func (n *TileGroup) Tiles(rank int) int64 {
	t := n.boxes[rank].tiles
	return t[0] * t[1] * t[2]
}

// Close frees what it holds. Closing twice is no error.
func (n *tileRanks) Close() error { return n.resources.Close() }
