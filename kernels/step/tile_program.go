package step

import (
	"fmt"

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

// tileSpan is the first step of a launch, how many it makes, how many launches were before, by what packets are numbered, and the
// checks.
type tileSpan struct {
	first, count, launch, base int64
	watch                      tileWatch
}

// tileWatch is struct Watch of watch.cuh, tileChecks its struct Checks.
type (
	tileWatch struct {
		every, until, before, squares, finite int64
		limit                                 float64
	}
	tileChecks struct {
		tiles, votes, voted uint64
		rank, ranks         int64
		host, report        uint64
	}
)

// tileProgram is many steps with a star that reaches one point, of a field in shared memory and registers, by threads as a tiling has
// them.
func tileProgram(s stencil.Stencil, r kernels.Real, b *tiling, defines ...string) kernels.Program {
	return kernels.Program{
		File: "tiles.cu",
		Defines: append([]string{
			scalar.Real(r), fmt.Sprintf("WIDTH=%d", b.block[0]), fmt.Sprintf("HEIGHT=%d", b.block[1]*b.rows()),
			fmt.Sprintf("LAYERS=%d", b.block[2]), fmt.Sprintf("REG_LAYERS=%d", b.regLayers),
		}, defines...),
		Headers: []kernels.Header{{Name: source.StencilHeader, Text: source.Stencil(s, r.Size())}},
		Mirrors: []kernels.Mirror{
			{Name: "NormSum", Value: reduce.Norms{}}, {Name: "Tiles", Value: tileArgs{}}, {Name: "NOBODY", Value: nobody},
			{Name: "THIS_DEVICE", Value: flags.Itself}, {Name: "NORMS_OF", Value: flags.NormsOf}, {Name: "sizeof(FaceItem)", Value: itemBytes},
			{Name: "THREADS", Value: int(b.threads())}, {Name: "ROWS", Value: int(b.rows())}, {Name: "PLANE", Value: int(b.plane())},
			{Name: "sizeof(Packet)", Value: 2 * r.Size()}, {Name: "CHECK_SLOTS", Value: checkSlots}, {Name: "sizeof(CheckPacket)", Value: checkPacketBytes},
		},
	}
}

// tilePrograms are those without norms, and with norms of the last step, whose sums are taken in a mode. They are two programs because they
// are compiled at the same time.
func tilePrograms(s stencil.Stencil, r kernels.Real, b *tiling, mode sums.Mode) [2]kernels.Program {
	return [2]kernels.Program{tileProgram(s, r, b), tileProgram(s, r, b, append([]string{"WITH_NORMS"}, mode.Defines()...)...)}
}

// checkedTiles is the program that takes norms of other steps too, see Checks.
func checkedTiles(s stencil.Stencil, r kernels.Real, b *tiling, mode sums.Mode) kernels.Program {
	p := tileProgram(s, r, b, append([]string{"CHECKS"}, mode.Defines()...)...)
	if mode != sums.Fast { // whose sums take less
		p.Mirrors = append(p.Mirrors, kernels.Mirror{Name: "sizeof(TileNorms)", Value: int(b.checkBytes())})
	}
	return p
}

// programs returns those of a rank.
func (n *TileGroup) programs(i int) [2]kernels.Program {
	return tilePrograms(n.stencil, n.real, &n.boxes[i], n.mode)
}

// checkedProgram returns that of a rank with checks.
func (n *TileGroup) checkedProgram(i int) kernels.Program {
	b := n.checking(i)
	return checkedTiles(n.stencil, n.real, &b, n.mode)
}

// checking returns the tiling of a rank with checks.
func (n *TileGroup) checking(i int) tiling {
	b, _ := n.boxes[i].checking(n.ranks[i].Device.Shared - tileReserve)
	return b
}
