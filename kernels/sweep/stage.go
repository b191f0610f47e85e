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

// StageRank is the work of one device in a stage of the time steps of one phase: it sweeps its points, and stores
// those that other ranks need into their ghosts.
type StageRank struct {
	Sweeper  *Sweeper     // sweeps the points
	Arrays   Arrays       // by access and component
	Boundary []domain.Box // the boundary region, up to six boxes without overlap
	Interior domain.Box   // all other owned points: none is stored elsewhere, none reads a ghost that is stored
	Stores   []Store      // stores of boundary points into ghosts; default none

	// Independent means that ranks exchange nothing in the stage, nor in the stages directly before and after it: it
	// neither waits nor signals, and its interior may read ghosts that other ranks store in other stages. The last
	// stage before it that is not independent has waited for the values it reads, and the next such stage after it
	// signals that they have been read. It must be the same on all ranks. An independent stage stores only into
	// ghosts of its own rank. Default false.
	Independent bool

	// Continued means that the next stage is the rest of this one: it waits for nothing more, and neighbors wait for
	// both. It must be the same on all ranks. Only FusedStages support such stages. Default false.
	Continued bool

	core domain.Box // see absorbSlabs
}

// Store is an additional store of boundary points of a written array into ghosts.
type Store struct {
	Access, Component int // indices of the written array
	kernels.GhostStore
	Array kernels.Array // of the other rank
}

// Intersect returns the part of a store whose source is in a box; ok is false if there is none.
func (s Store) Intersect(box domain.Box) (part Store, ok bool) {
	shift := s.Ghost.Lo.Sub(s.Send.Lo)
	s.Send = s.Send.Intersect(box)
	s.Ghost = s.Send.Shift(shift)
	return s, !s.Send.Empty()
}

// maxOdd is the largest number of transformations of a value on its way into ghosts: one per axis.
const maxOdd = 3

// reflects reports whether points are transformed on their way into ghosts.
func (r StageRank) reflects() bool {
	return slices.ContainsFunc(r.Stores, func(s Store) bool { return !s.Copies() })
}

// affine reports whether an affine transformation applies to a store.
func (r StageRank) affine() bool {
	return slices.ContainsFunc(r.Stores, func(s Store) bool { return len(s.Affines) > 0 })
}

// check returns an error unless a rank can run the stage together with those of the devices.
func (r StageRank) check(devices []*streams.Device) error {
	if len(r.Boundary) > maxSlabs {
		return fmt.Errorf("sweep: boxes of the boundary region: must be at most %d, got %d", maxSlabs, len(r.Boundary))
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
				"sweep: a stage of %d points in the box %v: must have fewer than 2^31 points along an axis, "+
					"and in a box of the boundary region",
				n, b)
		}
	}
	for _, s := range r.Stores {
		if r.Independent && s.Array != r.Arrays[s.Access][s.Component] {
			return fmt.Errorf("sweep: an independent stage must only store into its own rank, got rank %d", s.To)
		}
		if s.To < 0 || s.To >= len(devices) || s.Send.Empty() || s.Send.Size() != s.Ghost.Size() ||
			r.Sweeper.plan.written(s.Access, s.Component) < 0 {
			return fmt.Errorf("sweep: store of access %d, component %d, from %v into %v of rank %d: must be valid",
				s.Access,
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

// checkTarget returns an error unless a store goes into ghosts of an array with the same element type on the
// device.
func (r StageRank) checkTarget(s Store, d *streams.Device) error {
	a := s.Array
	if err := a.Holds(s.Ghost); err != nil {
		return err
	}
	if e := r.Sweeper.plan.accesses[s.Access].Element; a.Layout.ElementSize != e.Size() {
		return fmt.Errorf("sweep: store of %s into rank %d: element size must match, got %d bytes", e, s.To,
			a.Layout.ElementSize)
	}
	if !a.Layout.Owned.Intersect(s.Ghost).Empty() {
		return fmt.Errorf("sweep: store into %v of rank %d: must be ghosts of %v", s.Ghost, s.To, a.Layout.Owned)
	}
	if m := a.Data.Memory; m == nil || m.Device() != d {
		return fmt.Errorf("sweep: store into rank %d: must be on device %v, got %v", s.To, d, a.Data)
	}
	return nil
}

// checkOdd returns an error unless a store supports reflection.
func (r StageRank) checkOdd(s Store) error {
	e := r.Sweeper.plan.accesses[s.Access].Element
	if n := len(s.Odd) + len(s.Affines); n > maxOdd || n > 0 && !e.IsReal() {
		return fmt.Errorf("sweep: store: must change reals at most %d times, got %d", maxOdd, n)
	}
	for _, a := range s.Affines {
		given := a.Given
		if m := given.Data.Memory; m == nil || m.Device() != r.Sweeper.device || given.Layout.ElementSize != e.Size() {
			return fmt.Errorf("sweep: a store of %s by values at %v, not of that type on device %v", e, given.Data,
				r.Sweeper.device)
		}
		if err := a.Holds(s.Send); err != nil {
			return err
		}
	}
	for _, o := range s.Odd {
		if o == (domain.Vec{}) {
			return fmt.Errorf("sweep: store: must not reflect about its own points")
		}
		if err := r.Arrays[s.Access][s.Component].Holds(s.Send.Shift(o)); err != nil {
			return err
		}
	}
	return nil
}

// written returns the index of a component among the written arrays, or -1.
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

// storeOnHost stores the points of a box that go into ghosts.
func (r StageRank) storeOnHost(box domain.Box) {
	for _, st := range r.Stores {
		src := r.Arrays[st.Access][st.Component]
		if r.Sweeper.plan.accesses[st.Access].Element == domain.Float32 {
			storeRows[float32](src, box, st)
		} else if r.Sweeper.plan.accesses[st.Access].Element == domain.Float64 {
			storeRows[float64](src, box, st)
		} else {
			storeBytes(src, box, st)
		}
	}
}

// eachRow calls do with the offsets, in elements, of the rows of a box that go into ghosts.
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
		for _, a := range st.Affines {
			given := launch.Values[T](a.Given.Data)[a.Given.Layout.Offset(p.Add(a.By)):]
			for i := range n {
				factor := T(a.Factor)
				if a.FactorAt != 0 {
					factor = given[a.FactorAt+i]
				}
				to[q+i] = T(factor*to[q+i]) + T(T(a.Weight)*given[i])
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

// maxArgument is the largest size of the argument of a launch in bytes.
const maxArgument = 4096

// ErrImpossible means that stages and their arrays are valid, but no kernel of whole stages supports them.
var ErrImpossible = errors.New("sweep: no kernel supports these stages")

// shape returns the shape in which kernels of whole stages sweep the interior.
func (r StageRank) shape(arrays []kernels.Array) (Shape, error) {
	s := r.Sweeper
	shape := s.shape
	if !r.Interior.Empty() && !s.plan.grouped(arrays, r.Interior) {
		shape = s.form.single(shape)
	}
	if shape.Single && s.form.layered {
		return shape, fmt.Errorf("%w: the arrays of a stage must be aligned", ErrImpossible)
	}
	return shape, nil
}

// load returns a kernel of whole stages. Kernels that depend on the shape of sweeps are not compiled if a dry run
// does not know it yet.
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

// share assigns blocks of a fused stage to slabs.
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

// boundsOfStages returns the launch bounds of a fused stage, without and with norms and reductions: those of
// sweeps, except for the threads of a block, unless fused stages have separate bounds.
func (f form) boundsOfStages(single bool) (plain, measured launchBounds) {
	if f.fused != (fusedBounds{}) && !single {
		return f.fused.bounds, f.fused.measured
	}
	plain, measured = f.boundsOf(single)
	return plain, launchBounds{plain.threads, max(1, measured.threads*measured.blocks/plain.threads)}
}

// storing describes the stores of stage.cuh: the number of targets in the argument of a launch, see targets,
// whether points are transformed, by which scales, and whether some are in the interior.
type storing struct {
	room                    int
	reflects, affine, inner bool
}

// storing returns the stores of a rank.
func (r StageRank) storing(room int) storing {
	return storing{room, r.reflects(), r.affine(), r.storesInside()}
}

// stageOptions returns the options of stage.cuh and swept.cuh. Threads that stream get their number of layers at
// launch.
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
	if to.affine {
		text += "#define AFFINES\n"
	}
	if to.inner {
		text += "#define INNER_STORES\n"
	}
	return text
}

// maxSlabs and maxNeighbors are those of slab.cuh.
const (
	maxSlabs     = 6
	maxNeighbors = 26
)

// slab is a box of the boundary region, and the blocks that sweep it.
type slab struct {
	box       domain.Box
	blocks    int64
	neighbors []int // their indices among those of the rank: it waits for them, and signals them
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

// shareAll assigns blocks of the given threads to slabs such that there is about one block per multiprocessor:
// blocks stay resident while they wait for a neighbor and for the link.
func shareAll(slabs []slab, threads, cores int64) {
	each := max(1, ceil(pointsOf(slabs), threads*max(1, cores)))
	for i := range slabs {
		slabs[i].blocks = ceil(slabs[i].box.Points(), threads*each)
	}
}

// shareSome assigns a part of the given blocks to slabs, at least one each, weighted by four times the work of
// interior points, since their points are computed one by one.
func shareSome(slabs []slab, interior, threads, blocks int64) {
	total := pointsOf(slabs)
	most := max(int64(len(slabs)), blocks*4*total/max(1, 4*total+interior))
	if interior > 0 {
		most = min(most, blocks-1)
	}
	for i := range slabs { // the sum is at most most
		points := slabs[i].box.Points()
		slabs[i].blocks = min(ceil(points, threads), 1+max(0, most-int64(len(slabs)))*points/total)
	}
}

// putBoundary appends struct Boundary of slab.cuh.
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
		for _, at := range s.neighbors {
			bits |= 1 << at
		}
		w.putNarrow(s.box.Lo[:]...)
		w.putNarrow(size[:]...)
		w.putNarrow(int(first), int(s.blocks))
		w.put(bits)
		first += s.blocks
	}
}

// boundaryWords is the count of numbers in struct Boundary.
const boundaryWords = 2 + 3 + maxSlabs*5

// targets is struct Targets of stage.cuh.
type targets struct {
	all   []target
	lists []uint32        // where each list begins, and the last ends
	table [2]streams.Span // where upload has put them

	affines []affine // whose places the targets have, or their addresses once uploadAffines has put them
	values  []streams.Span
}

// newTargets lists the destinations of points of slabs, and those of the interior if there are any: for each slab
// and for each written array in turn.
func newTargets(r StageRank, slabs []slab, made *streams.Resources) (t targets, err error) {
	t.lists = []uint32{0}
	for _, one := range slabs {
		t.list(r, one.box)
	}
	if r.storesInside() {
		t.list(r, r.Interior)
	}
	return t, t.uploadAffines(r.Sweeper.device, made)
}

// list lists the destinations of points of a box.
func (t *targets) list(r StageRank, box domain.Box) {
	for w := range r.Sweeper.plan.writes {
		for _, s := range r.Stores {
			if r.Sweeper.plan.written(s.Access, s.Component) == w && !s.Send.Intersect(box).Empty() {
				t.all = append(t.all, t.newTarget(r, s))
			}
		}
		t.lists = append(t.lists, uint32(len(t.all)))
	}
}

// room returns the number of targets in the argument of a launch; 0 if there are too many.
func (t *targets) room() int {
	for _, room := range targetRooms {
		if len(t.all) <= room {
			return room
		}
	}
	return 0
}

// targetRooms are those of stars and of boxes of radius 1.
var targetRooms = []int{6, 26}

// upload copies the targets to device memory, for launches without targets in the argument.
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

// uploadAffines puts what targets do to values into device memory.
func (t *targets) uploadAffines(d *streams.Device, made *streams.Resources) error {
	if len(t.affines) == 0 {
		return nil
	}
	all, err := streams.Upload(d, t.affines)
	if err != nil {
		return err
	}
	made.Add(all)
	t.values = append(t.values, all.All())
	for i := range t.all {
		for k, place := range t.all[i].odd {
			if place >= firstAffine {
				t.all[i].odd[k] += int64(all.Address()) + (place-firstAffine)*(affineBytes-1)
			}
		}
	}
	return nil
}

// uses returns the device memory in which launches find the targets, and what is given behind faces.
func (t *targets) uses() (all []streams.Span) {
	for _, s := range append(t.table[:], t.values...) {
		if s.Memory != nil {
			all = append(all, s)
		}
	}
	return all
}

// listsOf is the count of numbers in struct Targets for the lists of the given written arrays.
func listsOf(writes int) int { return maxSlabs*writes + 2 }

// targetsBytes is the size of struct Targets.
func targetsBytes(room, writes int) int {
	if room == 0 {
		return 2 * 8
	}
	return room*targetBytes + 4*listsOf(writes)
}

// putTargets appends struct Targets.
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

// firstAffine is FIRST_AFFINE of slab.cuh.
const firstAffine = 1 << 62

// affine is struct Affine of slab.cuh.
type affine struct {
	factor, weight float64
	given          uint64
	factors        int64
	strides        strides
}

const affineBytes = int64(unsafe.Sizeof(affine{}))

// withTargets returns a program that includes slab.cuh, whose layout is then checked.
func withTargets(p kernels.Program) kernels.Program {
	p.Mirrors = append(p.Mirrors, kernels.Mirror{Name: "Target", Value: target{}},
		kernels.Mirror{Name: "Affine", Value: affine{}})
	return p
}

// newTarget returns the destination of the points of a store of a rank.
func (t *targets) newTarget(r StageRank, s Store) target {
	l, own := s.Array.Layout, r.Arrays[s.Access][s.Component].Layout
	at := int64(s.Array.Data.Address()) + l.Offset(s.Ghost.Lo.Sub(s.Send.Lo))*int64(l.ElementSize)
	one := target{ghost: uint64(at), strides: stridesOf(s.Array)}
	for axis := range one.lo {
		one.lo[axis], one.hi[axis] = int32(s.Send.Lo[axis]), int32(s.Send.Hi[axis])
	}
	for i, o := range s.Odd {
		one.odd[i] = own.Offset(s.Send.Lo.Add(o)) - own.Offset(s.Send.Lo)
	}
	for i, a := range s.Affines {
		one.odd[len(s.Odd)+i] = firstAffine + int64(len(t.affines))
		at := int64(a.Given.Data.Address()) + a.Given.Layout.Offset(a.By)*int64(a.Given.Layout.ElementSize)
		t.affines = append(t.affines, affine{a.Factor, a.Weight, uint64(at), a.FactorAt, stridesOf(a.Given)})
		t.values = append(t.values, a.Given.Data)
	}
	return one
}

// storesInside reports whether points of the interior go into ghosts, which are always of the rank itself. A stage
// that only reduces stores nothing.
func (r StageRank) storesInside() bool { return r.core != r.Interior && len(r.Sweeper.plan.writes) > 0 }

// joined returns the union of two adjacent boxes; ok is false if it is not a box.
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
