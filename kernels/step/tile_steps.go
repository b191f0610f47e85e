package step

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/streams"
)

// TileSteps launches the steps of one rank. All ranks queue the same steps, each by one thread. A rank that
// fails leaves the others waiting, up to their limit.
type TileSteps struct {
	group    *tileRanks
	rank     int
	wide     int64 // steps between two exchanges, of WideTileGroup; 0 of TileGroup
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

// Steps makes the steps of a rank ready. norms is where steps that write Fields[0] and those that write
// Fields[1] leave their norms, one reduce.Norms a tile.
func (n *TileGroup) Steps(rank int, norms [2]streams.Span) (s *TileSteps, err error) {
	s = &TileSteps{group: &n.tileRanks, rank: rank, launches: -1}
	programs := n.programs(rank)
	if s.plain, err = n.load(rank, programs[0], &n.boxes[rank], "tile_steps", norms); err != nil {
		return nil, err
	}
	if s.measured, err = n.load(rank, programs[1], &n.boxes[rank], "tile_steps_norms", norms); err != nil {
		return nil, err
	}
	if n.checks != nil {
		b := n.checking(rank)
		s.checked, err = n.load(rank, n.checkedProgram(rank), &b, "tile_steps_checked", norms)
	}
	return s, err
}

// load makes a launch ready.
func (n *TileGroup) load(i int, p kernels.Program, box *tiling, name string, norms [2]streams.Span) (k tileKernel, err error) {
	rank := n.ranks[i]
	arg := &tileArgs{
		strides: launch.StridesOf(rank.Fields[0].Layout), size: box.size, tiles: box.tiles, held: box.held(),
		limit: n.limit.Nanoseconds(), failed: n.flags.Report(i).Address(),
	}
	spec := n.spec(i, n.Tiles(i), box.block, box.shared)
	arg.field, arg.norms = n.uses(&spec, i, norms)
	for axis := range arg.inbox {
		arg.inbox[axis] = n.inbox[i].Address() + uint64(n.inboxOffset(i, axis))
		for high := range 2 {
			arg.side[axis][high] = n.tileSide(&spec, i, axis, high)
		}
	}
	for at, other := range n.flags.Neighbours(i) {
		arg.neighbour[at] = n.flags.Counts(i, at, 0, n.tilesToward(other, i))
	}
	if n.checks != nil {
		arg.checks = n.checkArgs(&spec, i)
	}
	return n.make(i, p, name, spec, launch.Argument(arg), unsafe.Offsetof(arg.span))
}

// spec is what launches of a rank have in common: so many tiles, each with a block of threads and bytes of shared memory.
func (n *tileRanks) spec(i int, tiles int64, block [3]int64, shared int64) streams.KernelSpec {
	spec := streams.KernelSpec{
		Name: "resident", Work: streams.Sweep, Shared: int(shared), Cooperative: true,
		Grid: [3]int{int(tiles), 1, 1}, Block: [3]int{int(block[0]), int(block[1]), int(block[2])},
		Uses: []streams.Span{n.flags.Memory(i).All(), n.flags.Report(i).All(), n.inbox[i].All()},
	}
	for at := range n.flags.Neighbours(i) {
		_, its := n.flags.Pair(i, at, 0)
		spec.Reaches = append(spec.Reaches, its)
	}
	return spec
}

// uses returns where the fields of a rank begin and where norms go, and adds them to what a launch uses.
func (n *tileRanks) uses(spec *streams.KernelSpec, i int, norms [2]streams.Span) (field, to [2]uint64) {
	for f, a := range n.ranks[i].Fields {
		field[f], to[f] = addressOf(a, a.Layout.Owned.Lo), norms[f].Address()
		spec.Uses = append(spec.Uses, a.Data, norms[f])
	}
	return field, to
}

// make makes a launch ready, in whose argument there is a tileSpan.
func (n *tileRanks) make(i int, p kernels.Program, name string, spec streams.KernelSpec, argument []byte, span uintptr) (k tileKernel, err error) {
	device := n.ranks[i].Device
	found, err := n.compiler.LoadSteps(device, p, name)
	if err != nil {
		return k, err
	}
	spec.Function, spec.Argument = found[0], argument
	if k.kernel, err = launch.New(device, spec); err != nil {
		return k, err
	}
	n.resources.Add(k.kernel)
	k.span = &streams.View[tileSpan](k.kernel.Argument()[span:][:unsafe.Sizeof(tileSpan{})])[0]
	return k, nil
}

// addressOf returns where a GPU finds a point, which may be a ghost.
func addressOf(a kernels.Array, p domain.Vec) uint64 {
	return a.Data.Address() + uint64(a.Layout.Offset(p)*int64(a.Layout.ElementSize))
}

// tileSide describes a side of a rank: where its points go, and whom the ghosts behind it
// come from, who is the rank that it stores into.
func (n *TileGroup) tileSide(spec *streams.KernelSpec, i, axis, high int) tileSide {
	st := n.sides[i][axis][high]
	if st.store < 0 {
		return tileSide{other: nobody}
	}
	send, ghost := n.ranks[i].Stores[st.store].Send, n.ranks[i].Stores[st.store].Ghost
	at := tileSide{out: n.sideSlot(st.to, axis, st.high), other: int64(n.flags.Place(st.to, i))}
	first := ghost.Lo.Sub(send.Lo.Sub(n.ranks[i].Fields[0].Layout.Owned.Lo))
	for f, a := range n.ranks[st.to].Fields {
		at.ghost[f], at.strides = addressOf(a, first), launch.StridesOf(a.Layout)
		spec.Reaches = append(spec.Reaches, a.Data)
	}
	spec.Reaches = append(spec.Reaches, n.inbox[st.to].All())
	return at
}

// MaxTileSteps is how many steps a launch may make.
const MaxTileSteps = 1 << 30

// Queue queues steps, the first of which has a number, from 1: that after those queued before. With norms
// the last leaves them. It returns an error also if the device has waited in vain before.
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
		return errors.New("step: steps after checks that nobody has looked at")
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

// QueueChecked is Queue with norms of the last step, and with checks of those before. When the launch is done Checked must be
// called, before more is queued.
func (s *TileSteps) QueueChecked(at *streams.Stream, first, steps int64, c Checks) error {
	switch {
	case !s.CanCheck():
		return errors.New("step: checks of tiles that are not prepared for them")
	case c.Until < 0 || c.Every < 1 || c.Every > math.MaxInt32 || c.Until > MaxTileSteps:
		return fmt.Errorf("step: checks of every %d steps after %d", c.Every, c.Until)
	case (steps-2-c.Until)/c.Every+1 > MostChecks:
		return fmt.Errorf("step: more than %d checks in one launch", MostChecks)
	}
	return s.queue(at, s.checked, first, steps, c.watch(s.checks))
}

// Checked returns the norms of this rank's tiles at each check of the launch, and which of them ended it, counted from 1; 0 if it made all its steps.
// Those after that one are left out.
func (s *TileSteps) Checked() (norms []reduce.Norms, ended int64) {
	host := s.group.checks[s.rank].host.Bytes()
	report := streams.View[int64](host[MostChecks*normsBytes:])
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

// Err returns an error if the device has waited in vain for a neighbour, or its thread blocks for each
// other.
func (s *TileSteps) Err() error { return s.group.flags.Err(s.rank, "a step") }
