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

// newFaceTiles cuts the fields of ranks into tiles with ghosts one point wide. It returns ErrNoTiles unless every store
// is of one whole side and to a rank that stores back, and every field fits.
func newFaceTiles(t *tileRanks) (*faceTiles, error) {
	f := &faceTiles{tileRanks: t}
	if err := f.cut(); err != nil {
		return nil, err
	}
	return f, f.connect(f.neighbours(), maxFaces)
}

// connect makes the network of ranks, of which each has no more neighbours than most.
func (t *tileRanks) connect(neighbours [][]int, most int) (err error) {
	var devices []*streams.Device
	for _, rank := range t.ranks {
		if slices.Contains(devices, rank.Device) {
			return fmt.Errorf("step: two ranks of a step on device %v", rank.Device)
		}
		devices = append(devices, rank.Device)
	}
	t.flags, err = flags.NewNetwork(devices, neighbours, most, 1, 0)
	return err
}

// check returns an error unless ranks have devices, and ErrNoTiles unless they can have tiles of some kind.
func (t *tileRanks) check() error {
	if _, ok := t.stencil.AsStar(); !ok || t.real.Size() == 0 {
		return fmt.Errorf("%w: the stencil must be a star of radius 1, of float32 or float64", ErrNoTiles)
	}
	for i, rank := range t.ranks {
		if rank.Device == nil {
			return fmt.Errorf("step: rank %d has no device", i)
		}
		if rank.Device.GoKernels || rank.Fields[0].Layout != rank.Fields[1].Layout || !rank.Fields[0].Layout.Padded() {
			return fmt.Errorf("%w: only GPUs have tiles, and only fields of one padded layout", ErrNoTiles)
		}
	}
	return nil
}

// cut cuts all fields into tiles.
func (f *faceTiles) cut() error {
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

// neighbours returns those of each rank: the ranks that it stores into, which store into it.
func (f *faceTiles) neighbours() [][]int {
	neighbours := make([][]int, len(f.ranks))
	for i, rank := range f.ranks {
		for _, s := range rank.Stores {
			if s.To != i && !slices.Contains(neighbours[i], s.To) {
				neighbours[i] = append(neighbours[i], s.To)
			}
		}
	}
	return neighbours
}

// TileSteps launches the steps of one rank. All ranks queue the same steps, each by one thread. If a rank fails, the
// other devices wait up to their limit.
type TileSteps struct {
	group    *tileRanks
	rank     int
	wide     int64 // steps between two exchanges if there are several; 0 otherwise
	plain    tileKernel
	measured tileKernel // the same, which takes the norms of its last step on the way
	checked  tileKernel // and checks, if these have been prepared
	launches int64
	span     tileSpan // of the launch queued last
	base     int64    // of the next
	checks   int64    // of all launches that Checked was called for
	unread   bool     // Checked has not been called for the launch queued last
}

// tileKernel is a launch, and where its argument says what it makes.
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
	for at, other := range f.flags.Neighbours(i) {
		arg.neighbour[at] = f.flags.Counts(i, at, 0, f.tilesToward(other, i))
	}
	if f.checks != nil {
		arg.checks = f.checkArgs(&spec, i)
	}
	return f.load(i, f.program(i, v), spec, launch.Argument(arg), unsafe.Offsetof(arg.span))
}

// spec is what launches of a rank have in common: so many tiles, each with a block of threads and bytes of shared
// memory.
func (t *tileRanks) spec(i int, tiles int64, block [3]int64, shared int64) streams.KernelSpec {
	spec := streams.KernelSpec{
		Name: "resident", Work: streams.Sweep, Shared: int(shared), Cooperative: true,
		Grid: [3]int{int(tiles), 1, 1}, Block: [3]int{int(block[0]), int(block[1]), int(block[2])},
		Uses: []streams.Span{t.flags.Memory(i).All(), t.flags.Report(i).All(), t.inbox[i].All()},
	}
	for at := range t.flags.Neighbours(i) {
		_, its := t.flags.Pair(i, at, 0)
		spec.Reaches = append(spec.Reaches, its)
	}
	return spec
}

// uses returns where the fields of a rank begin and where norms go, and adds them to what a launch uses.
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

// addressOf returns where a GPU finds a point, which may be a ghost.
func addressOf(a kernels.Array, p domain.Vec) uint64 {
	return a.Data.Address() + uint64(a.Layout.Offset(p)*int64(a.Layout.ElementSize))
}

// tileSide describes a side of a rank: where its points go, and from which rank the ghosts behind it come, which is the
// one that it stores into.
func (f *faceTiles) tileSide(spec *streams.KernelSpec, i, axis, high int) tileSide {
	st := f.sides[i][axis][high]
	if st.store < 0 {
		return tileSide{other: nobody}
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

// MaxTileSteps is how many steps a launch may make.
const MaxTileSteps = 1 << 30

// Queue queues steps, the first by its number, which continues those queued before; the very first is 1. With norms the
// last step leaves them. It returns an error also if a wait of the device timed out before.
func (s *TileSteps) Queue(at *streams.Stream, first, steps int64, norms bool) error {
	if norms {
		return s.queue(at, s.measured, first, steps, tileWatch{})
	}
	return s.queue(at, s.plain, first, steps, tileWatch{})
}

// queue queues a launch.
func (s *TileSteps) queue(at *streams.Stream, k tileKernel, first, steps int64, w tileWatch) error {
	if first < 1 || steps < 1 || steps > MaxTileSteps {
		return fmt.Errorf("step: %d steps from %d in one launch", steps, first)
	}
	if s.unread {
		return errors.New("step: call Checked after a launch with checks, before more steps are queued")
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

// QueueChecked is Queue with norms of the last step, and with checks of those before. When the launch is done Checked
// must be called, before more is queued.
func (s *TileSteps) QueueChecked(at *streams.Stream, first, steps int64, c Checks) error {
	switch {
	case !s.CanCheck():
		return errors.New("step: checks of tiles that are not prepared for them")
	case c.Until < 0 || c.Every < 1 || c.Every > math.MaxInt32 || c.Until > MaxTileSteps:
		return fmt.Errorf("step: checks of every %d steps after %d", c.Every, c.Until)
	case (steps-2-c.Until)/c.Every+1 > MaxChecks:
		return fmt.Errorf("step: more than %d checks in one launch", MaxChecks)
	}
	return s.queue(at, s.checked, first, steps, c.watch(s.checks))
}

// Checked returns the norms of this rank's tiles at each check of the launch, and which of them ended it, counted from
// 1; 0 if it made all its steps. Those after that one are left out.
func (s *TileSteps) Checked() (norms []reduce.Norms, ended int64) {
	host := s.group.checks[s.rank].host.Bytes()
	report := streams.View[int64](host[MaxChecks*normsBytes:])
	ended, begun := report[0], report[1]
	s.checks, s.unread = s.checks+begun, false
	if ended > 0 {
		begun = ended
	}
	if ended > 0 && s.wide == 0 { // its steps were sent, and are made again
		s.base += s.span.count
	}
	return streams.View[reduce.Norms](host[:begun*normsBytes]), ended
}

// Err returns an error if a wait of the device for a neighbour, or of its thread blocks for each other, timed out.
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

// nobody is NOBODY of tile.cuh: what a side has instead of a neighbour where nothing is stored; -1 is the rank itself.
const nobody = -2

// tileSpan is the first step of a launch, how many it makes, how many launches were before, by what packets are
// numbered, and the checks.
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

// stepProgram is a program of many steps with a star that reaches one point: with defines and mirrors of its own, and
// those that all such programs have.
func stepProgram(
	file string, s stencil.Stencil, r kernels.Real, defines []string, mirrors ...kernels.Mirror,
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

// variant is what a kernel computes besides steps, as a define of its program.
type variant string

const (
	onlySteps variant = ""
	lastNorms variant = "WITH_NORMS" // the norms of the last step
	allNorms  variant = "CHECKS"     // those of any steps, see Checks
)

// defines returns the defines of a program for a mode of sums.
func (v variant) defines(mode sums.Mode) []string {
	if v == onlySteps {
		return nil
	}
	return append([]string{string(v)}, mode.Defines()...)
}

// tileProgram runs the steps of a field in shared memory and registers, by threads as a tiling has them.
func tileProgram(s stencil.Stencil, r kernels.Real, b *tiling, v variant, mode sums.Mode) kernels.Program {
	defines := []string{
		fmt.Sprintf("WIDTH=%d", b.block[0]), fmt.Sprintf("HEIGHT=%d", b.block[1]*b.rows()),
		fmt.Sprintf("LAYERS=%d", b.block[2]), fmt.Sprintf("REG_LAYERS=%d", b.regLayers),
	}
	p := stepProgram("tiles.cu", s, r, append(defines, v.defines(mode)...),
		kernels.Mirror{Name: "Tiles", Value: tileArgs{}},
		kernels.Mirror{Name: "NOBODY", Value: nobody},
		kernels.Mirror{Name: "sizeof(FaceItem)", Value: itemBytes},
		kernels.Mirror{Name: "THREADS", Value: int(b.threads())},
		kernels.Mirror{Name: "ROWS", Value: int(b.rows())},
		kernels.Mirror{Name: "PLANE", Value: int(b.plane())},
	)
	if v == allNorms && mode != sums.Fast { // fast sums take less
		p.Mirrors = append(p.Mirrors, kernels.Mirror{Name: "sizeof(TileNorms)", Value: int(b.checkBytes())})
	}
	return p
}

// program returns that of a rank.
func (f *faceTiles) program(i int, v variant) kernels.Program {
	return tileProgram(f.stencil, f.real, f.tiling(i, v), v, f.mode)
}

// tiling returns the tiling of a rank, with other threads where a kernel computes the norms of any steps.
func (f *faceTiles) tiling(i int, v variant) *tiling {
	b := f.boxes[i]
	if v == allNorms {
		b, _ = b.checking(f.ranks[i].Device.Shared - tileReserve)
	}
	return &b
}

// canCheck reports whether the tiles of a rank have room for checks.
func (f *faceTiles) canCheck(i int) bool {
	b := &f.boxes[i]
	_, ok := b.checking(f.ranks[i].Device.Shared - tileReserve)
	return ok && b.size[0]*b.size[1]*b.size[2] <= checkedSum
}

// makeChecks makes what the checks of all ranks leave, which have so many tiles.
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

// checkArgs returns where the checks of a rank leave what, and adds that to what a launch uses.
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

// watch returns the checks as a launch has them.
func (c Checks) watch(before int64) tileWatch {
	w := tileWatch{every: c.Every, until: c.Until, before: before, limit: c.Tolerance}
	if c.Finite {
		w.finite = 1
	}
	if c.L2 {
		w.squares = 1
		if c.Tolerance >= 0 { // and what sums of squares are off by
			w.limit = c.Tolerance*c.Tolerance*(1+1e-12) + 1e-300
		}
	}
	return w
}

// Checks lists the steps before the last at which a launch computes norms, and the tolerance at which it stops there. A
// launch that stops has stored nothing: the fields are as they were before it. It decides by rounded norms: where these
// are close to the tolerance it may stop at a check whose exact norms are above.
type Checks struct {
	Until, Every int64   // steps of the launch before the first, and from one to the next
	Tolerance    float64 // the launch stops at a change, over all ranks, of at most this; negative: at none
	L2           bool    // the change is the root of the sum of its squares, not the largest
	Finite       bool    // the launch stops at non-finite values
}

// MaxChecks is how many checks a launch may have.
const MaxChecks = 1 << 10

const (
	checkSlots       = 32 // CHECK_SLOTS of watch.cuh
	checkPacketBytes = 16
	normsBytes       = int64(unsafe.Sizeof(reduce.Norms{}))
	reportBytes      = 16
	checkedSum       = 1 << 23 // points, of which a GPU joins the sums as 64-bit integers
	foldedNumbers    = 4       // of a sum in struct SumRows of folding.cuh, beside its window
)

// maxCheckThreads is the most threads of a block that takes norms within a launch: more have too few registers.
const maxCheckThreads = 512

// checking returns the tiling with the threads of blocks that take norms within a launch: a warp at least, some of
// whose threads may have no points. ok is false where there is no room for that, in a GPU's shared memory.
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

// exchangesIn returns how many exchanges a launch of so many steps has, see Place of wide_tiles.cu.
func exchangesIn(steps, wide int64) int64 {
	if 1 < steps && steps <= wide {
		return 1
	}
	return (steps - 1) / wide
}
