package step

import (
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// tileArgs is struct Tiles of tile.cuh, tileSide its struct Side.
type (
	tileArgs struct {
		span        tileSpan `cu:"inline"`
		field       [2]uint64
		strides     launch.Strides
		size, tiles [3]int64
		held        int64
		side        [3][2]tileSide
		inbox       [3]uint64
		neighbour   [maxFaces]flags.Neighbour
		norms       [2]uint64
		limit       int64
		failed      uint64
		checks      tileChecks
	}
	tileSide struct {
		out     uint64
		ghost   [2]uint64
		strides launch.Strides
		other   int64
	}
)

// nobody is what a side has instead of a neighbour where nothing is stored; -1 is the rank
// itself.
const nobody = -2

// tileSpan is the first step of a launch, how many it makes, how many launches were before, what is added to steps in packets, and the
// checks.
type tileSpan struct {
	first, count, launch, skipped int64
	watch                         tileWatch
}

// tileWatch is struct Watch of tile.cuh, tileChecks its struct Checks.
type (
	tileWatch struct {
		every, until, before, squares, finite int64
		limit                                 float64
	}
	tileChecks struct {
		tiles, arrived, votes, voted uint64
		rank, ranks                  int64
		host, report                 uint64
	}
)

// tilePrograms are many steps with a star that reaches one point, of a field in shared memory
// and registers, by threads as a tiling has them: the first without norms, the other with them.
// Sums of norms are taken in a mode, and with checks also within a launch. They are two programs because they are compiled at the same time.
func tilePrograms(s stencil.Stencil, r kernels.Real, b *tiling, mode sums.Mode, checks bool) [2]kernels.Program {
	plain := kernels.Program{
		File: "tiles.cu",
		Defines: []string{
			scalar.Real(r), fmt.Sprintf("WIDTH=%d", b.block[0]), fmt.Sprintf("HEIGHT=%d", b.block[1]*b.rows()),
			fmt.Sprintf("LAYERS=%d", b.block[2]), fmt.Sprintf("REG_LAYERS=%d", b.regLayers),
		},
		Headers: []kernels.Header{{Name: source.StencilHeader, Text: source.Stencil(s, r.Size())}},
		Mirrors: []kernels.Mirror{
			{Name: "NormSum", Value: reduce.Norms{}}, {Name: "Tiles", Value: tileArgs{}}, {Name: "NOBODY", Value: nobody},
			{Name: "THIS_DEVICE", Value: flags.Itself}, {Name: "sizeof(FaceItem)", Value: itemBytes},
			{Name: "THREADS", Value: int(b.threads())}, {Name: "ROWS", Value: int(b.rows())}, {Name: "PLANE", Value: int(b.plane())},
			{Name: "sizeof(Packet)", Value: 2 * r.Size()},
		},
	}
	measured := plain
	measured.Defines = append(append(slices.Clone(plain.Defines), "WITH_NORMS"), mode.Defines()...)
	if checks {
		measured.Defines = append(measured.Defines, "CHECKS")
		measured.Mirrors = append(slices.Clone(plain.Mirrors),
			kernels.Mirror{Name: "CHECK_SLOTS", Value: checkSlots}, kernels.Mirror{Name: "sizeof(Vote)", Value: voteBytes})
		if mode != sums.Fast { // whose sums take less
			measured.Mirrors = append(measured.Mirrors, kernels.Mirror{Name: "sizeof(TileNorms)", Value: int(b.checkBytes())})
		}
	}
	return [2]kernels.Program{plain, measured}
}

// programs returns those of a rank.
func (n *TileGroup) programs(i int) [2]kernels.Program {
	return tilePrograms(n.stencil, n.real, &n.boxes[i], n.mode, n.checks != nil)
}
