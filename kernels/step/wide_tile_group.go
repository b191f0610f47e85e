package step

import "github.com/halox/halox/streams"

// WideTileGroup is the ranks that make steps together with an exchange after some of them.
type WideTileGroup struct {
	tileRanks
	steps   int        // between two exchanges
	ranksOf []wideRank // by rank
	boxes   []wideTiling
	lists   []wideLists
	odd     int64 // packets of even exchanges, for which each inbox has room
	tables  []wideTables
}

// wideTables is where the lists of a rank lie on its device.
type wideTables struct{ tiles, items, senders, copies, inboxes, neighbours *streams.Memory }

// wideLists is what the tiles of a rank send and receive.
type wideLists struct {
	tiles   []wideTile
	items   []uint64 // struct Item of wide_tile.cuh
	senders []uint8  // beside items
	most    int64    // items of a tile
}

// Tiles returns how many thread blocks a rank has, a tile each.
func (n *WideTileGroup) Tiles(rank int) int64 { return int64(len(n.lists[rank].tiles)) }
