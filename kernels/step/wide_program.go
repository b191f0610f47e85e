package step

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// wideArgs is struct Tiles of wide_tile.cuh, wideTile its struct WideTile, ghostCopy its struct GhostCopy.
type (
	wideArgs struct {
		span           tileSpan `cu:"inline"`
		field          [2]uint64
		strides        launch.Strides
		mirrors        [3][2]int64
		tiles          uint64
		items          uint64
		senders        uint64
		copies         uint64
		odd            int64
		inboxes        uint64
		neighbours     uint64
		neighbourCount int64
		norms          [2]uint64
		limit          int64
		failed         uint64
		checks         tileChecks
	}
	wideTile struct {
		lo, n, from, to [3]int32
		sent, received  int32
		items, packets  int64
		near, copies    uint64
	}
	ghostCopy struct {
		lo, hi  [3]int32
		field   [2]uint64
		strides launch.Strides
	}
)

// wideCopy is points of a rank that lie in ghosts of a rank too. ghost is where the first point of its box would lie there.
type wideCopy struct {
	to     int
	lo, hi [3]int32
	ghost  domain.Vec
}

// maxWideNeighbours is NEIGHBOURS of wide_tile.cuh: how many a rank has at most. hereCode is HERE: how items name the rank itself.
const (
	maxWideNeighbours = 26
	hereCode          = maxWideNeighbours
)

// wideProgram is groups of steps with a star that reaches one point, of a field in shared memory, by threads as a tiling has them.
func wideProgram(s stencil.Stencil, r kernels.Real, b *wideTiling, defines ...string) kernels.Program {
	return kernels.Program{
		File: "wide_tiles.cu",
		Defines: append([]string{
			scalar.Real(r), fmt.Sprintf("STEPS=%d", b.steps), fmt.Sprintf("WIDTH=%d", b.extent(0)), fmt.Sprintf("HEIGHT=%d", b.extent(1)), fmt.Sprintf("PLANES=%d", b.extent(2)),
			fmt.Sprintf("GHOSTS_X=%d", b.ghosts[0]), fmt.Sprintf("GHOSTS_Y=%d", b.ghosts[1]), fmt.Sprintf("GHOSTS_DEPTH=%d", b.ghosts[2]), fmt.Sprintf("LAYERS=%d", b.layers),
		}, defines...),
		Headers: []kernels.Header{{Name: source.StencilHeader, Text: source.Stencil(s, r.Size())}},
		Mirrors: []kernels.Mirror{
			{Name: "NormSum", Value: reduce.Norms{}}, {Name: "Tiles", Value: wideArgs{}}, {Name: "WideTile", Value: wideTile{}}, {Name: "GhostCopy", Value: ghostCopy{}},
			{Name: "THIS_DEVICE", Value: flags.Itself}, {Name: "NORMS_OF", Value: flags.NormsOf}, {Name: "sizeof(Item)", Value: itemBytes}, {Name: "HERE", Value: hereCode},
			{Name: "COLUMNS", Value: int(b.columns())}, {Name: "PLANE", Value: int(b.plane())}, {Name: "COLUMN", Value: int(b.column())},
			{Name: "sizeof(Packet)", Value: 2 * r.Size()}, {Name: "CHECK_SLOTS", Value: checkSlots}, {Name: "sizeof(CheckPacket)", Value: checkPacketBytes},
		},
	}
}

// widePrograms are as tilePrograms.
func widePrograms(s stencil.Stencil, r kernels.Real, b *wideTiling, mode sums.Mode) [2]kernels.Program {
	return [2]kernels.Program{wideProgram(s, r, b), wideProgram(s, r, b, append([]string{"WITH_NORMS"}, mode.Defines()...)...)}
}

// checkedWideTiles is as checkedTiles.
func checkedWideTiles(s stencil.Stencil, r kernels.Real, b *wideTiling, mode sums.Mode) kernels.Program {
	return wideProgram(s, r, b, append([]string{"CHECKS"}, mode.Defines()...)...)
}
