package step

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// newFaceTiles divides the fields of ranks into tiles with ghosts one point wide. It returns ErrNoTiles unless
// every store is of one whole side and between ranks that store into each other, and every field fits.
func newFaceTiles(t *tileRanks) (*faceTiles, error) {
	f := &faceTiles{tileRanks: t}
	if err := f.cut(); err != nil {
		return nil, err
	}
	return f, f.connect(f.neighbors(), maxFaces)
}

// connect creates the network of ranks, each with at most most neighbors.
func (t *tileRanks) connect(neighbors [][]int, most int) (err error) {
	var devices []*streams.Device
	for _, rank := range t.ranks {
		if slices.Contains(devices, rank.Device) {
			return fmt.Errorf("step: ranks must be on different devices, got two on device %v", rank.Device)
		}
		devices = append(devices, rank.Device)
	}
	t.flags, err = flags.NewNetwork(devices, neighbors, most, 1, 0)
	return err
}

// check returns an error unless ranks have devices, and ErrNoTiles unless they can have tiles of some kind.
func (t *tileRanks) check() error {
	if _, ok := t.stencil.AsStar(); !ok && !t.row() || !t.real.IsReal() {
		return fmt.Errorf("%w: the stencil must be a star of radius 1, of float32 or float64", ErrNoTiles)
	}
	for i, rank := range t.ranks {
		if rank.Device == nil {
			return fmt.Errorf("step: rank %d: device must not be nil", i)
		}
		if rank.Device.GoKernels || rank.Fields[0].Layout != rank.Fields[1].Layout || !rank.Fields[0].Layout.Padded() {
			return fmt.Errorf("%w: devices must be GPUs, and both fields must have the same padded layout", ErrNoTiles)
		}
	}
	return nil
}

// row reports whether the stencil is a star of radius 1 of one dimension, which reads nothing along y.
func (t *tileRanks) row() bool {
	return t.stencil.Radius() == domain.Radius{Minus: domain.Vec{1}, Plus: domain.Vec{1}}
}

// cut divides all fields into tiles.
func (f *faceTiles) cut() error {
	if f.row() {
		return ErrNoTiles
	}
	for i, rank := range f.ranks {
		sides, ok := f.sideStores(i)
		if !ok {
			return ErrNoTiles
		}
		room := tileRoom{int64(rank.Device.Cores), rank.Device.Shared - tileReserve}
		box, ok := bestTiling(f.stencil.Dims, f.size(i), int64(f.real.Size()), room)
		if !ok {
			return ErrNoTiles
		}
		f.boxes, f.sides = append(f.boxes, box), append(f.sides, sides)
	}
	for i := range f.sides {
		for axis := range f.sides[i] {
			for high, s := range f.sides[i][axis] {
				if s.store < 0 {
					continue
				}
				if back := f.sides[s.to][axis][side(s.high)]; back.store < 0 || back.to != i ||
					side(back.high) != high {
					return ErrNoTiles
				}
			}
		}
	}
	return nil
}

// neighbors returns the neighbors of each rank: ranks that store into each other.
func (f *faceTiles) neighbors() [][]int {
	neighbors := make([][]int, len(f.ranks))
	for i, rank := range f.ranks {
		for _, s := range rank.Stores {
			if s.To != i && !slices.Contains(neighbors[i], s.To) {
				neighbors[i] = append(neighbors[i], s.To)
			}
		}
	}
	return neighbors
}

// TileSteps launches the steps of one rank. All ranks must queue the same steps, each by one thread. If a rank
// fails, the other devices wait up to their limit.
type TileSteps struct {
	group    *tileRanks
	rank     int
	wide     int64 // steps between exchanges if more than one; 0 otherwise
	plain    tileKernel
	measured tileKernel // the same with the norms of its last step
	checked  tileKernel // the same with checks, if prepared
	launches int64
	span     tileSpan // of the last queued launch
	base     int64    // of the next launch
	checks   int64    // in all launches for which Checked was called
	unread   bool     // Checked was not called for the last queued launch
}

// tileKernel is a launch, and the location of the steps in its argument.
type tileKernel struct {
	kernel *streams.Kernel
	span   *tileSpan
}

// launch prepares the kernel of a rank.
func (f *faceTiles) launch(i int, v variant, norms [2]streams.Span) (tileKernel, error) {
	rank, box := f.ranks[i], f.tiling(i, v)
	arg := &tileArgs{
		strides: launch.StridesOf(rank.Fields[0].Layout), size: box.size, tiles: box.tiles, held: box.held(),
		limit: f.limit.Nanoseconds(), failed: f.flags.Report(i).Address(),
	}
	spec := f.spec(i, f.count(i), box.block, box.shared)
	arg.field, arg.norms = f.uses(&spec, i, norms)
	for axis := range arg.inbox {
		arg.inbox[axis] = f.inbox[i].Address() + uint64(f.inboxOffset(i, axis))
		for high := range 2 {
			arg.side[axis][high] = f.tileSide(&spec, i, axis, high)
		}
	}
	for at, other := range f.flags.Neighbors(i) {
		arg.neighbor[at] = f.flags.Counts(i, at, 0, f.tilesToward(other, i))
	}
	if f.checks != nil {
		arg.checks = f.checkArgs(&spec, i)
	}
	return f.load(i, f.program(i, v), spec, launch.Argument(arg), unsafe.Offsetof(arg.span))
}

// spec returns the common part of the launches of a rank: one block per tile with the given threads and bytes of
// shared memory.
func (t *tileRanks) spec(i int, tiles int64, block [3]int64, shared int64) streams.KernelSpec {
	spec := streams.KernelSpec{
		Name: "resident", Work: streams.Sweep, Shared: int(shared), Cooperative: true,
		Grid: [3]int{int(tiles), 1, 1}, Block: [3]int{int(block[0]), int(block[1]), int(block[2])},
		Uses: []streams.Span{t.flags.Memory(i).All(), t.flags.Report(i).All(), t.inbox[i].All()},
	}
	for at := range t.flags.Neighbors(i) {
		_, its := t.flags.Pair(i, at, 0)
		spec.Reaches = append(spec.Reaches, its)
	}
	return spec
}

// uses returns the first points of the fields of a rank and the destinations of norms, and adds them to the spans
// of a launch.
func (t *tileRanks) uses(spec *streams.KernelSpec, i int, norms [2]streams.Span) (field, to [2]uint64) {
	for f, a := range t.ranks[i].Fields {
		field[f], to[f] = addressOf(a, a.Layout.Owned.Lo), norms[f].Address()
		spec.Uses = append(spec.Uses, a.Data, norms[f])
	}
	return field, to
}

// load prepares a launch whose argument contains a tileSpan.
func (t *tileRanks) load(
	i int, p kernels.Program, spec streams.KernelSpec, argument []byte, span uintptr,
) (k tileKernel, err error) {
	device := t.ranks[i].Device
	found, err := t.compiler.LoadSteps(device, p, "tile_steps")
	if err != nil {
		return k, err
	}
	spec.Function, spec.Argument = found[0], argument
	if k.kernel, err = launch.New(device, spec); err != nil {
		return k, err
	}
	t.resources.Add(k.kernel)
	k.span = &streams.View[tileSpan](k.kernel.Argument()[span:][:unsafe.Sizeof(tileSpan{})])[0]
	return k, nil
}

// addressOf returns the device address of a point, owned or a ghost.
func addressOf(a kernels.Array, p domain.Vec) uint64 {
	return a.Data.Address() + uint64(a.Layout.Offset(p)*int64(a.Layout.ElementSize))
}

// tileSide describes a side of a rank: the destination of its points, and the rank that its ghosts come from,
// which is the one that it stores into.
func (f *faceTiles) tileSide(spec *streams.KernelSpec, i, axis, high int) tileSide {
	st := f.sides[i][axis][high]
	if st.store < 0 {
		return tileSide{other: noRank}
	}
	send, ghost := f.ranks[i].Stores[st.store].Send, f.ranks[i].Stores[st.store].Ghost
	at := tileSide{out: f.sideSlot(st.to, axis, st.high), other: int64(f.flags.Place(st.to, i))}
	first := ghost.Lo.Sub(send.Lo.Sub(f.ranks[i].Fields[0].Layout.Owned.Lo))
	for f, a := range f.ranks[st.to].Fields {
		at.ghost[f], at.strides = addressOf(a, first), launch.StridesOf(a.Layout)
		spec.Reaches = append(spec.Reaches, a.Data)
	}
	spec.Reaches = append(spec.Reaches, f.inbox[st.to].All())
	return at
}

// MaxTileSteps is the largest number of steps in a launch.
const MaxTileSteps = 1 << 30

// Queue queues steps. first is the number of the first one, which must continue those queued before; the very
// first is 1. With norms the last step stores its norms. Queue returns an error if an earlier wait of the device
// timed out.
func (s *TileSteps) Queue(at *streams.Stream, first, steps int64, norms bool) error {
	if norms {
		return s.queue(at, s.measured, first, steps, tileWatch{})
	}
	return s.queue(at, s.plain, first, steps, tileWatch{})
}

// queue queues a launch.
func (s *TileSteps) queue(at *streams.Stream, k tileKernel, first, steps int64, w tileWatch) error {
	if first < 1 || steps < 1 || steps > MaxTileSteps {
		return fmt.Errorf("step: launch: must begin at step 1 or later with 1 to %d steps, got step %d with %d steps",
			MaxTileSteps, first, steps)
	}
	if s.unread {
		return errors.New("step: Checked must be called after a launch with checks, before more steps are queued")
	}
	if err := s.Err(); err != nil {
		return err
	}
	s.launches++
	s.span, s.unread = tileSpan{first, steps, s.launches, s.base, w}, w.every > 0
	*k.span = s.span
	if s.wide > 0 {
		s.base += exchangesIn(steps, s.wide)
	}
	return at.Launch(k.kernel)
}

// CanCheck reports whether QueueChecked may be called.
func (s *TileSteps) CanCheck() bool { return s.checked.kernel != nil }

// QueueChecked is Queue with norms of the last step, and with checks of earlier steps. When the launch is done
// Checked must be called, before more is queued.
func (s *TileSteps) QueueChecked(at *streams.Stream, first, steps int64, c Checks) error {
	switch {
	case !s.CanCheck():
		return errors.New("step: checks must be prepared by PrepareChecks")
	case c.Until < 0 || c.Every < 1 || c.Every > math.MaxInt32 || c.Until > MaxTileSteps:
		return fmt.Errorf("step: checks: Every must be at least 1 and Until at least 0, got %d and %d", c.Every,
			c.Until)
	case (steps-2-c.Until)/c.Every+1 > MaxChecks:
		return fmt.Errorf("step: checks: must be at most %d in one launch", MaxChecks)
	}
	return s.queue(at, s.checked, first, steps, c.watch(s.checks))
}

// Checked returns the norms of this rank's tiles at each check of the launch, and which check ended it, counted
// from 1; 0 if it ran all its steps. Norms after that check are omitted.
func (s *TileSteps) Checked() (norms []reduce.Norms, ended int64) {
	host := s.group.checks[s.rank].host.Bytes()
	report := streams.View[int64](host[MaxChecks*normsBytes:])
	ended, begun := report[0], report[1]
	s.checks, s.unread = s.checks+begun, false
	if ended > 0 {
		begun = ended
	}
	if ended > 0 && s.wide == 0 { // its steps were sent, and are run again
		s.base += s.span.count
	}
	return streams.View[reduce.Norms](host[:begun*normsBytes]), ended
}

// Err returns an error if a wait of the device for a neighbor, or of its thread blocks for each other, timed out.
func (s *TileSteps) Err() error { return s.group.flags.Err(s.rank, "a step") }

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
		neighbor    [maxFaces]flags.Neighbor
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

// noRank is NO_RANK of tile.cuh: the rank of a side without a store; -1 is the rank itself.
const noRank = -2

// tileSpan holds the first step of a launch, its number of steps, the number of previous launches, the base of
// packet numbers, and the checks.
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

// stepProgram returns a program of many steps of a star of radius 1, with common and specific defines and mirrors.
func stepProgram(
	file string, s stencil.Stencil, r domain.Element, defines []string, mirrors ...kernels.Mirror,
) kernels.Program {
	return kernels.Program{
		File:    file,
		Defines: append([]string{scalar.Real(r)}, defines...),
		Headers: []kernels.Header{{Name: source.StencilHeader, Text: source.Stencil(s, r.Size())}},
		Mirrors: append(mirrors,
			kernels.Mirror{Name: "NormSum", Value: reduce.Norms{}},
			kernels.Mirror{Name: "THIS_DEVICE", Value: flags.Itself},
			kernels.Mirror{Name: "NORMS_OF", Value: flags.NormsOf},
			kernels.Mirror{Name: "sizeof(Packet)", Value: 2 * r.Size()},
			kernels.Mirror{Name: "CHECK_SLOTS", Value: checkSlots},
			kernels.Mirror{Name: "sizeof(CheckPacket)", Value: checkPacketBytes},
		),
	}
}

// variant is an additional computation of a kernel, as a define of its program.
type variant string

const (
	onlySteps variant = ""
	lastNorms variant = "WITH_NORMS" // the norms of the last step
	allNorms  variant = "CHECKS"     // norms of intermediate steps, see Checks
)

// defines returns the defines of a program for a mode of sums.
func (v variant) defines(mode sums.Mode) []string {
	if v == onlySteps {
		return nil
	}
	return append([]string{string(v)}, mode.Defines()...)
}

// tileProgram runs the steps of a field in shared memory and registers, with the threads of a tiling.
func tileProgram(s stencil.Stencil, r domain.Element, b *tiling, v variant, mode sums.Mode) kernels.Program {
	defines := []string{
		fmt.Sprintf("WIDTH=%d", b.block[0]), fmt.Sprintf("HEIGHT=%d", b.block[1]*b.rows()),
		fmt.Sprintf("LAYERS=%d", b.block[2]), fmt.Sprintf("REG_LAYERS=%d", b.regLayers),
	}
	p := stepProgram("tiles.cu", s, r, append(defines, v.defines(mode)...),
		kernels.Mirror{Name: "Tiles", Value: tileArgs{}},
		kernels.Mirror{Name: "NO_RANK", Value: noRank},
		kernels.Mirror{Name: "sizeof(FaceItem)", Value: itemBytes},
		kernels.Mirror{Name: "THREADS", Value: int(b.threads())},
		kernels.Mirror{Name: "ROWS", Value: int(b.rows())},
		kernels.Mirror{Name: "PLANE", Value: int(b.plane())},
	)
	if v == allNorms && mode != sums.Fast { // fast sums need less
		p.Mirrors = append(p.Mirrors, kernels.Mirror{Name: "sizeof(TileNorms)", Value: int(b.checkBytes())})
	}
	return p
}

// program returns the program of a rank.
func (f *faceTiles) program(i int, v variant) kernels.Program {
	return tileProgram(f.stencil, f.real, f.tiling(i, v), v, f.mode)
}

// tiling returns the tiling of a rank, with other threads for a kernel with norms of intermediate steps.
func (f *faceTiles) tiling(i int, v variant) *tiling {
	b := f.boxes[i]
	if v == allNorms {
		b, _ = b.checking(f.ranks[i].Device.Shared - tileReserve)
	}
	return &b
}

// canCheck reports whether the tiles of a rank have space for checks.
func (f *faceTiles) canCheck(i int) bool {
	b := &f.boxes[i]
	_, ok := b.checking(f.ranks[i].Device.Shared - tileReserve)
	return ok && b.size[0]*b.size[1]*b.size[2] <= checkedSum
}

// makeChecks allocates the results of the checks of all ranks, with the given numbers of tiles.
func (t *tileRanks) makeChecks(tiles func(rank int) int64) error {
	ranks := int64(len(t.ranks))
	addresses, checks := make([]uint64, ranks), make([]checkRoom, ranks)
	for i, rank := range t.ranks {
		votes := make([]byte, checkSlots*ranks*checkPacketBytes)
		streams.Into(&t.resources, &checks[i].votes)(streams.Upload(rank.Device, votes))
		if err := t.resources.Err(); err != nil {
			return err
		}
		addresses[i] = checks[i].votes.Address()
	}
	for i, rank := range t.ranks {
		c := &checks[i]
		packets := make([]byte, checkSlots*tiles(i)*normsBytes/8*checkPacketBytes)
		streams.Into(&t.resources, &c.tiles)(streams.Upload(rank.Device, packets))
		streams.Into(&t.resources, &c.voted)(streams.Upload(rank.Device, addresses))
		c.host = t.resources.AllocPinned(rank.Device, MaxChecks*normsBytes+reportBytes)
	}
	t.checks = checks
	return t.resources.Err()
}

// checkArgs returns the destinations of the checks of a rank, and adds them to the spans of a launch.
func (t *tileRanks) checkArgs(spec *streams.KernelSpec, i int) tileChecks {
	c, ranks := t.checks[i], int64(len(t.ranks))
	spec.Uses = append(spec.Uses, c.votes.All(), c.tiles.All(), c.voted.All(), c.host.All())
	for other := range t.checks {
		if other != i {
			spec.Reaches = append(spec.Reaches, t.checks[other].votes.All())
		}
	}
	return tileChecks{
		tiles: c.tiles.Address(), votes: c.votes.Address(), voted: c.voted.Address(),
		rank: int64(i), ranks: ranks, host: c.host.Address(), report: c.host.Address() + uint64(MaxChecks*normsBytes),
	}
}

// watch returns the checks in the form of a launch.
func (c Checks) watch(before int64) tileWatch {
	w := tileWatch{every: c.Every, until: c.Until, before: before, limit: c.Tolerance}
	if c.Finite {
		w.finite = 1
	}
	if c.L2 {
		w.squares = 1
		if c.Tolerance >= 0 { // with a margin for rounding of sums of squares
			w.limit = c.Tolerance*c.Tolerance*(1+1e-12) + 1e-300
		}
	}
	return w
}

// Checks selects the steps, before the last, at which a launch computes norms, and the tolerance at which it
// stops. A launch that stops has no effect on the fields. It uses rounded norms: if these are close to the
// tolerance it may stop at a check whose exact norms are above.
type Checks struct {
	Until, Every int64   // steps of the launch before the first check (default 0), and between checks (at least 1)
	Tolerance    float64 // the launch stops at a change, over all ranks, of at most this; if negative, never
	L2           bool    // use the root of the sum of squares of the change instead of its maximum; default false
	Finite       bool    // also stop at non-finite values; default false
}

// MaxChecks is the largest number of checks in a launch.
const MaxChecks = 1 << 10

const (
	checkSlots       = 32 // CHECK_SLOTS of watch.cuh
	checkPacketBytes = 16
	normsBytes       = int64(unsafe.Sizeof(reduce.Norms{}))
	reportBytes      = 16
	checkedSum       = 1 << 23 // points; a GPU joins their sums as 64-bit integers
	foldedNumbers    = 4       // of a sum in struct SumRows of folding.cuh, besides its window
)

// maxCheckThreads is the largest number of threads of a block that computes norms within a launch, limited by
// registers.
const maxCheckThreads = 512

// checking returns the tiling with threads for norms within a launch: at least a warp, some of whose threads may
// have no points. ok is false if shared memory has no space for that.
func (b tiling) checking(room int64) (c tiling, ok bool) {
	layer := b.block[0] * b.block[1]
	if !b.whole() || layer > maxCheckThreads {
		return b, false
	}
	b.block[2] = min(b.block[2], maxCheckThreads/layer)
	if least := ceil(warpThreads, layer); b.block[2] < least {
		b.block[2] = least
		b.share()
	}
	return b, b.shared+b.checkBytes() <= room
}

const warpThreads = 32

// checkBytes is the shared memory in which such a block joins norms: struct TileNorms of checks.cuh.
func (b *tiling) checkBytes() int64 {
	const sums = 2
	rows := b.threads()/warpThreads + b.threads()%warpThreads
	return rows*sums*(8*foldedNumbers+4) + normsBytes + 4*sums*warpThreads
}

// exchangesIn returns the number of exchanges in a launch, see Place of wide_tiles.cu.
func exchangesIn(steps, wide int64) int64 {
	if 1 < steps && steps <= wide {
		return 1
	}
	return (steps - 1) / wide
}
