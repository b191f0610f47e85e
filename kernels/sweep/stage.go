package sweep

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// StageRank is what one device does in a stage of the time steps of one phase: it sweeps its points, and stores those
// that others need into their ghosts.
type StageRank struct {
	Sweeper  *Sweeper
	Arrays   Arrays
	Boundary []domain.Box // the boundary region, up to six boxes that do not overlap
	Interior domain.Box   // all other owned points: none is stored elsewhere, none reads a ghost that is
	Stores   []Store

	// Independent says that ranks exchange nothing in the stage, nor in the stages right before and after it: it
	// neither waits nor signals, and its interior may read ghosts that others store in other stages. The last stage
	// before it that is not independent has waited for what it reads, and the next one after it signals that it has
	// been read. It is the same on all ranks. An independent stage stores only into ghosts of its own rank.
	Independent bool

	// Continued says that the next stage is the rest of this one: it waits for nothing more, and neighbours wait for
	// both. It is the same on all ranks. Only FusedStages have such stages.
	Continued bool

	core   domain.Box      // see absorbSlabs
	scales []kernels.Scale // see scalesOf
}

// Store says where boundary points of a written array go beside their own place.
type Store struct {
	Access, Component int
	kernels.GhostStore
	Array kernels.Array // of the other rank
}

// Within returns the part of a store that leaves points of a box; ok is false where none do.
func (s Store) Within(box domain.Box) (part Store, ok bool) {
	shift := s.Ghost.Lo.Sub(s.Send.Lo)
	s.Send = s.Send.Intersect(box)
	s.Ghost = s.Send.Shift(shift)
	return s, !s.Send.Empty()
}

// maxOdd is how often a value may change on its way into ghosts: once for each axis.
const maxOdd = 3

// reflects reports whether points change on their way into ghosts.
func (r StageRank) reflects() bool {
	return slices.ContainsFunc(r.Stores, func(s Store) bool { return !s.Copies() })
}

// scalesOf returns each scale that a store of any rank has, once. The programs of all ranks hold them as constants.
func scalesOf(ranks [][][]StageRank) (all []kernels.Scale) {
	for _, r := range slices.Concat(slices.Concat(ranks...)...) {
		for _, s := range r.Stores {
			for _, scale := range s.Scales {
				if !slices.Contains(all, scale) {
					all = append(all, scale)
				}
			}
		}
	}
	return all
}

// check returns an error unless a rank can make the stage together with those of the devices.
func (r StageRank) check(devices []*streams.Device) error {
	if len(r.Boundary) > maxSlabs {
		return fmt.Errorf("sweep: a boundary region of %d boxes; must be at most %d", len(r.Boundary), maxSlabs)
	}
	boxes := slices.Clone(r.Boundary)
	if !r.Interior.Empty() {
		boxes = append(boxes, r.Interior)
	}
	for first := 0; first < len(boxes); first += maxBoxes {
		if err := r.Sweeper.check(r.Arrays, boxes[first:min(first+maxBoxes, len(boxes))]); err != nil {
			return err
		}
	}
	for _, b := range boxes {
		if n := b.Points(); n >= 1<<31 && b != r.Interior || max(b.Hi[0], b.Hi[1], b.Hi[2]) >= 1<<31 {
			return fmt.Errorf(
				"sweep: a stage of %d points in the box %v; must be fewer than 2^31 along an axis, "+
					"and in one of the boundary region",
				n, b)
		}
	}
	for _, s := range r.Stores {
		if r.Independent && s.Array != r.Arrays[s.Access][s.Component] {
			return fmt.Errorf("sweep: an independent stage with a store into rank %d", s.To)
		}
		if s.To < 0 || s.To >= len(devices) || s.Send.Empty() || s.Send.Size() != s.Ghost.Size() ||
			r.Sweeper.plan.written(s.Access, s.Component) < 0 {
			return fmt.Errorf("sweep: a store of access %d, component %d, from %v into %v of rank %d", s.Access,
				s.Component, s.Send, s.Ghost, s.To)
		}
		if err := r.checkTarget(s, devices[s.To]); err != nil {
			return err
		}
		if err := r.checkOdd(s); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget returns an error unless a store goes into ghosts of an array of its values on the device.
func (r StageRank) checkTarget(s Store, d *streams.Device) error {
	a := s.Array
	if err := a.Holds(s.Ghost); err != nil {
		return err
	}
	if e := r.Sweeper.plan.accesses[s.Access].Element; a.Layout.ElementSize != e.size() {
		return fmt.Errorf("sweep: a store of %s into an array of rank %d with elements of %d bytes", e, s.To,
			a.Layout.ElementSize)
	}
	if !a.Layout.Owned.Intersect(s.Ghost).Empty() {
		return fmt.Errorf("sweep: a store into %v of rank %d, which are no ghosts of %v", s.Ghost, s.To, a.Layout.Owned)
	}
	if m := a.Data.Memory; m == nil || m.Device() != d {
		return fmt.Errorf("sweep: a store for rank %d, on device %v, into %v", s.To, d, a.Data)
	}
	return nil
}

// checkOdd returns an error unless a store can reflect.
func (r StageRank) checkOdd(s Store) error {
	if n := len(s.Odd) + len(s.Scales); n > maxOdd || n > 0 && !r.Sweeper.plan.accesses[s.Access].Element.real() {
		return fmt.Errorf("sweep: a store that reflects or scales %d times; reals can %d times", n, maxOdd)
	}
	for _, o := range s.Odd {
		if o == (domain.Vec{}) {
			return fmt.Errorf("sweep: a store that reflects about itself")
		}
		if err := r.Arrays[s.Access][s.Component].Holds(s.Send.Shift(o)); err != nil {
			return err
		}
	}
	return nil
}

// written returns the place of a component among the written arrays, -1 if it is none.
func (n *plan) written(access, component int) int {
	return slices.IndexFunc(n.writes,
		func(w writtenArray) bool { return w.access == access && w.component == component })
}

// reaches returns the memory of other ranks that a rank stores into.
func (r StageRank) reaches(rank int) (all []streams.Span) {
	for _, s := range r.Stores {
		if s.To != rank {
			all = append(all, s.Array.Data)
		}
	}
	return all
}

// storeOnHost stores those points of a box that go into ghosts.
func (r StageRank) storeOnHost(box domain.Box) {
	for _, st := range r.Stores {
		src := r.Arrays[st.Access][st.Component]
		if r.Sweeper.plan.accesses[st.Access].Element == "float32" {
			storeRows[float32](src, box, st)
		} else if r.Sweeper.plan.accesses[st.Access].Element == "float64" {
			storeRows[float64](src, box, st)
		} else {
			storeBytes(src, box, st)
		}
	}
}

// eachRow calls do with the places, in elements, of the rows of a box that go into ghosts.
func (st Store) eachRow(src kernels.Array, box domain.Box, do func(p domain.Vec, from, to, n int64)) {
	send := st.Send.Intersect(box)
	if send.Empty() {
		return
	}
	shift, n := st.Ghost.Lo.Sub(st.Send.Lo), int64(send.Size()[0])
	for z := send.Lo[2]; z < send.Hi[2]; z++ {
		for y := send.Lo[1]; y < send.Hi[1]; y++ {
			p := domain.Vec{send.Lo[0], y, z}
			do(p, src.Layout.Offset(p), st.Array.Layout.Offset(p.Add(shift)), n)
		}
	}
}

func storeRows[T rows.Float](src kernels.Array, box domain.Box, st Store) {
	from, to := values[T](&src), values[T](&st.Array)
	st.eachRow(src, box, func(p domain.Vec, o, q, n int64) {
		copy(to[q:q+n], from[o:o+n])
		for _, odd := range st.Odd {
			wall := from[src.Layout.Offset(p.Add(odd)):]
			for i := range n {
				to[q+i] = 2*wall[i] - to[q+i]
			}
		}
		for _, s := range st.Scales {
			for i := range n {
				to[q+i] = T(T(s.Factor)*to[q+i]) + T(s.Shift)
			}
		}
	})
}

func storeBytes(src kernels.Array, box domain.Box, st Store) {
	from, to, size := values[byte](&src), values[byte](&st.Array), int64(src.Layout.ElementSize)
	st.eachRow(src, box, func(_ domain.Vec, o, q, n int64) {
		copy(to[q*size:(q+n)*size], from[o*size:(o+n)*size])
	})
}

// maxArgument is how large the argument of a launch may be.
const maxArgument = 4096

// ErrImpossible says that stages and their arrays are right, and no kernel of whole stages can make them.
var ErrImpossible = errors.New("sweep: no kernel can make these stages")

// shape returns in which shape the interior of the arrays is swept by kernels of whole stages.
func (r StageRank) shape(arrays []kernels.Array) (Shape, error) {
	s := r.Sweeper
	shape := s.shape
	if !r.Interior.Empty() && !s.plan.grouped(arrays, r.Interior) {
		shape = s.form.single(shape)
	}
	if shape.Single && s.form.layered {
		return shape, fmt.Errorf("%w: a stage of arrays that are not aligned", ErrImpossible)
	}
	return shape, nil
}

// load returns a kernel of whole stages. Where they depend on the shape of sweeps, and a dry run does not know it,
// they are not compiled: another shape may be found.
func (s *Sweeper) load(d *streams.Device, p kernels.Program, kernel string) (function, error) {
	if s.untuned && s.form.way != streaming {
		return streams.DryFunction(), nil
	}
	found, err := s.compiler.LoadSteps(d, p, kernel)
	if err != nil {
		return nil, s.plan.explain(err)
	}
	return found[0], nil
}

// fusedShape returns the shape of a fused stage.
func (r StageRank) fusedShape(arrays []kernels.Array) (Shape, error) {
	shape, err := r.shape(arrays)
	bounds, _ := r.Sweeper.form.boundsOfStages(shape.Single)
	return shape.within(bounds), err
}

// share gives slabs their blocks of a fused stage.
func (r StageRank) share(slabs []slab) error {
	shape, err := r.fusedShape(slices.Concat(r.Arrays...))
	if err == nil {
		shareAll(slabs, int64(shape.Block[0]*shape.Block[1]), int64(r.Sweeper.device.Cores))
	}
	return err
}

// swept returns the rank with sweeps in another shape.
func (r StageRank) swept(shape Shape) StageRank {
	s := *r.Sweeper
	s.shape, r.Sweeper = shape, &s
	return r
}

// boundsOfStages returns the launch bounds of a fused stage, without and with what it measures: those of
// sweeps, except for the threads of a block, unless fused stages have their own.
func (f form) boundsOfStages(single bool) (plain, measured launchBounds) {
	if f.fused != (fusedBounds{}) && !single {
		return f.fused.bounds, f.fused.measured
	}
	plain, measured = f.boundsOf(single)
	return plain, launchBounds{plain.threads, max(1, measured.threads*measured.blocks/plain.threads)}
}

// storing says what stage.cuh has to store: for how many targets the argument of a launch has room, see
// targets, whether points change on their way, by which scales some do, and whether some are of the interior.
type storing struct {
	room            int
	reflects, inner bool
	scales          []kernels.Scale
}

// storing returns what a rank has to store.
func (r StageRank) storing(room int) storing {
	return storing{room, r.reflects(), r.storesInside(), r.scales}
}

// stageOptions are those of stage.cuh and swept.cuh. Threads that stream are told at a launch how many
// layers they take.
func stageOptions(f form, s Shape, prefetch, phases int, to storing) string {
	layers := s.Layers
	if f.way == streaming {
		layers = 1
	}
	text := fmt.Sprintf(
		"enum { STAGE_SINGLE = %t, STAGE_LAYERS = %d, STAGE_MEASURED_LAYERS = %d, "+
			"STAGE_PREFETCH = %d, PHASES = %d };\n",
		s.Single, layers, f.measuredLayers(layers), prefetch, phases)
	text += fmt.Sprintf("#define TARGETS %d\n", to.room)
	if to.reflects {
		text += "#define REFLECTS\n"
	}
	if len(to.scales) > 0 {
		text += "#define SCALES "
		for i, s := range to.scales {
			text += fmt.Sprintf("%c {%x, %x}", "{,"[min(i, 1)], s.Factor, s.Shift)
		}
		text += "}\n"
	}
	if to.inner {
		text += "#define INNER_STORES\n"
	}
	return text
}

// maxSlabs and maxNeighbours are those of slab.cuh.
const (
	maxSlabs      = 6
	maxNeighbours = 26
)

// slab is a box of the boundary region, and the blocks that sweep it.
type slab struct {
	box        domain.Box
	blocks     int64
	neighbours []int // their places among those of the rank: it waits for them, and signals them
}

func pointsOf(slabs []slab) (total int64) {
	for _, s := range slabs {
		total += s.box.Points()
	}
	return total
}

func blocksOf(slabs []slab) (total int64) {
	for _, s := range slabs {
		total += s.blocks
	}
	return total
}

// shareAll gives slabs as many blocks of so many threads as let a thread have so many points that there
// is about one block a multiprocessor: blocks keep their place there while they wait for a neighbour and
// for the link.
func shareAll(slabs []slab, threads, cores int64) {
	each := max(1, ceil(pointsOf(slabs), threads*max(1, cores)))
	for i := range slabs {
		slabs[i].blocks = ceil(slabs[i].box.Points(), threads*each)
	}
}

// shareSome gives slabs their part of so many blocks, one at least, at four times the work of points of the
// interior: they are computed one by one.
func shareSome(slabs []slab, interior, threads, blocks int64) {
	total := pointsOf(slabs)
	most := max(int64(len(slabs)), blocks*4*total/max(1, 4*total+interior))
	if interior > 0 {
		most = min(most, blocks-1)
	}
	for i := range slabs { // the sum is no more than most
		points := slabs[i].box.Points()
		slabs[i].blocks = min(ceil(points, threads), 1+max(0, most-int64(len(slabs)))*points/total)
	}
}

// putBoundary puts struct Boundary of slab.cuh.
func (w *words) putBoundary(slabs []slab, core domain.Box) {
	w.put(blocksOf(slabs), int64(len(slabs)))
	w.putNarrow(core.Lo[:]...)
	w.putNarrow(core.Hi[:]...)
	first := int64(0)
	for i := range maxSlabs {
		var s slab
		if i < len(slabs) {
			s = slabs[i]
		}
		size, bits := s.box.Size(), int64(0)
		for _, at := range s.neighbours {
			bits |= 1 << at
		}
		w.putNarrow(s.box.Lo[:]...)
		w.putNarrow(size[:]...)
		w.putNarrow(int(first), int(s.blocks))
		w.put(bits)
		first += s.blocks
	}
}

// boundaryWords is how many numbers struct Boundary has.
const boundaryWords = 2 + 3 + maxSlabs*5

// targets is struct Targets of stage.cuh.
type targets struct {
	all   []target
	lists []uint32        // where each list begins, and the last ends
	table [2]streams.Span // where upload has put them
}

// newTargets lists where points of slabs go, and those of the interior if some do: for each and for each
// written array in turn.
func newTargets(r StageRank, slabs []slab) (t targets) {
	t.lists = []uint32{0}
	for _, one := range slabs {
		t.list(r, one.box)
	}
	if r.storesInside() {
		t.list(r, r.Interior)
	}
	return t
}

// list lists where points of a box go.
func (t *targets) list(r StageRank, box domain.Box) {
	for w := range r.Sweeper.plan.writes {
		for _, s := range r.Stores {
			if r.Sweeper.plan.written(s.Access, s.Component) == w && !s.Send.Intersect(box).Empty() {
				t.all = append(t.all, newTarget(r, s))
			}
		}
		t.lists = append(t.lists, uint32(len(t.all)))
	}
}

// room returns for how many targets the argument of a launch shall have room; 0 where they are too many.
func (t *targets) room() int {
	for _, room := range targetRooms {
		if len(t.all) <= room {
			return room
		}
	}
	return 0
}

// targetRooms are those of stars and of boxes that reach one point.
var targetRooms = []int{6, 26}

// upload puts the targets into device memory, for launches without room.
func (t *targets) upload(d *streams.Device, made *streams.Resources) error {
	lists, err := streams.Upload(d, t.lists)
	if err != nil {
		return err
	}
	made.Add(lists)
	t.table[1] = lists.All()
	if len(t.all) == 0 {
		return nil
	}
	all, err := streams.Upload(d, t.all)
	if err != nil {
		return err
	}
	made.Add(all)
	t.table[0] = all.All()
	return nil
}

// uses returns the device memory in which launches find the targets.
func (t *targets) uses() (all []streams.Span) {
	for _, s := range t.table {
		if s.Memory != nil {
			all = append(all, s)
		}
	}
	return all
}

// listsOf is how many numbers struct Targets has for the lists of so many written arrays.
func listsOf(writes int) int { return maxSlabs*writes + 2 }

// targetsBytes is the size of struct Targets.
func targetsBytes(room, writes int) int {
	if room == 0 {
		return 2 * 8
	}
	return room*targetBytes + 4*listsOf(writes)
}

// putTargets puts struct Targets.
func (w *words) putTargets(t targets, room, writes int) {
	if room == 0 {
		w.put(int64(t.table[0].Address()), int64(t.table[1].Address()))
		return
	}
	end := len(*w) + targetsBytes(room, writes)
	for i := range t.all {
		*w = append(*w, launch.Argument(&t.all[i])...)
	}
	*w = append(*w, make([]byte, (room-len(t.all))*targetBytes)...)
	for _, n := range t.lists {
		w.putNarrow(int(n))
	}
	*w = append(*w, make([]byte, end-len(*w))...)
}

// target is struct Target of slab.cuh.
type target struct {
	lo, hi  [3]int32
	ghost   uint64
	strides strides
	odd     [maxOdd]int64
}

const targetBytes = int(unsafe.Sizeof(target{}))

// firstScale is FIRST_SCALE of slab.cuh.
const firstScale = 1 << 62

// withTargets returns a program that includes slab.cuh, whose layout is then checked.
func withTargets(p kernels.Program) kernels.Program {
	p.Mirrors = append(p.Mirrors, kernels.Mirror{Name: "Target", Value: target{}})
	return p
}

// newTarget returns where the points of a store of a rank go.
func newTarget(r StageRank, s Store) target {
	l, own := s.Array.Layout, r.Arrays[s.Access][s.Component].Layout
	at := int64(s.Array.Data.Address()) + l.Offset(s.Ghost.Lo.Sub(s.Send.Lo))*int64(l.ElementSize)
	t := target{ghost: uint64(at), strides: stridesOf(s.Array)}
	for axis := range t.lo {
		t.lo[axis], t.hi[axis] = int32(s.Send.Lo[axis]), int32(s.Send.Hi[axis])
	}
	for i, o := range s.Odd {
		t.odd[i] = own.Offset(s.Send.Lo.Add(o)) - own.Offset(s.Send.Lo)
	}
	for i, scale := range s.Scales {
		t.odd[len(s.Odd)+i] = firstScale + int64(slices.Index(r.scales, scale))
	}
	return t
}

// storesInside reports whether points of the interior go into ghosts, which are of the rank itself. A stage that writes
// nothing, as it only reduces, stores nothing.
func (r StageRank) storesInside() bool { return r.core != r.Interior && len(r.Sweeper.plan.writes) > 0 }

// joined returns the box of two that lie beside each other; ok is false where they do not make one.
func joined(a, b domain.Box) (both domain.Box, ok bool) {
	both = a
	sides := 0
	for axis := range 3 {
		if a.Lo[axis] == b.Lo[axis] && a.Hi[axis] == b.Hi[axis] {
			continue
		}
		if a.Hi[axis] != b.Lo[axis] && b.Hi[axis] != a.Lo[axis] {
			return both, false
		}
		both.Lo[axis], both.Hi[axis] = min(a.Lo[axis], b.Lo[axis]), max(a.Hi[axis], b.Hi[axis])
		sides++
	}
	return both, sides == 1
}
