package kernels

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepGroup is the ranks that make fused steps together, and which of them waits for which.
type stepGroup struct {
	kind    StepKind
	stencil stencil.Stencil
	real    Real
	ranks   []StepRank
	limit   time.Duration
	parts   []stepPart
	flags   *flags.Network // a line for each neighbour, with the count of its blocks that have finished steps, and one for its own
	tiled   *tiled         // nil where the steps are no tiles
}

// stepPart is a rank with its slabs, the boxes of its boundary region.
type stepPart struct {
	slabs []boundarySlab
}

// boundarySlab is a box of the boundary region, the stores that take points from it, and
// the neighbours that it waits for and that wait for it, by their places in lists.
type boundarySlab struct {
	box                domain.Box
	stores, neighbours []int
	blocks             int64 // thread blocks that sweep it
}

// maxFaces is how many boxes the boundary region of a rank may have.
const maxFaces = 6

// MaxStores is how many stores and neighbours a rank may have: one for each layer of ghosts of
// a star or a box that reaches two points in two dimensions, and one in three. The argument
// of a launch, which has 4096 bytes at most, holds them.
const MaxStores = 26

// maxStores returns how many stores and neighbours a rank has at most with a stencil: one
// for each direction that it reaches to, and there for each layer, which may be a wall's.
func maxStores(s stencil.Stencil) int {
	star, box := 0, 1
	for a := range s.Dims {
		star += 2 * s.AxisRadius(a)
		box *= 1 + 2*s.AxisRadius(a)
	}
	for _, o := range s.Offsets() {
		if o[0]*o[1] != 0 || o[1]*o[2] != 0 || o[2]*o[0] != 0 {
			return min(MaxStores, box-1)
		}
	}
	return min(MaxStores, star)
}

func newStepGroup(kind StepKind, s stencil.Stencil, real Real, ranks []StepRank, limit time.Duration) (*stepGroup, error) {
	if kind != FusedStep && kind != ResidentSteps && kind != StreamedSteps || real.Size() == 0 || len(ranks) == 0 {
		return nil, fmt.Errorf("kernels: steps of kind %q, type %q, on %d devices", kind, real, len(ranks))
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	n := &stepGroup{kind: kind, stencil: s, real: real, ranks: ranks, limit: limit}
	for i := range ranks {
		if err := n.check(i); err != nil {
			return nil, err
		}
	}
	if err := n.connect(); err != nil {
		return nil, err
	}
	for i := range ranks {
		n.parts = append(n.parts, n.part(i))
	}
	if kind == ResidentSteps {
		n.tiled = n.tile()
	}
	return n, nil
}

// check returns an error unless an end's boxes lie in its fields and its stores end in
// ghosts.
func (n *stepGroup) check(i int) error {
	rank := n.ranks[i]
	if slices.ContainsFunc(n.ranks[:i], func(e StepRank) bool { return e.Device == rank.Device }) {
		return fmt.Errorf("kernels: two ranks of a step on device %v", rank.Device)
	}
	if rank.Fields[0].Layout != rank.Fields[1].Layout || !rank.Fields[0].Layout.Padded() {
		return fmt.Errorf("kernels: a step between fields of different layouts, or of a caller's own")
	}
	if most := maxStores(n.stencil); len(rank.Boundary) > maxFaces || len(rank.Stores) > most {
		return fmt.Errorf("kernels: a boundary region of %d boxes and %d stores; up to %d and %d are possible", len(rank.Boundary), len(rank.Stores), maxFaces, most)
	}
	if rank.Shape != (Shape{}) && !slices.Contains(formOf(n.stencil, n.real).shapes, rank.Shape) {
		return fmt.Errorf("kernels: an interior swept in shape %v", rank.Shape)
	}
	for _, b := range append(slices.Clone(rank.Boundary), rank.Interior) {
		if err := n.checkBox(rank, b); err != nil {
			return err
		}
	}
	for _, s := range rank.Stores {
		if err := n.checkStore(rank, s); err != nil {
			return err
		}
	}
	return nil
}

// checkBox returns an error unless a rank can sweep a box of its own.
func (n *stepGroup) checkBox(rank StepRank, b domain.Box) error {
	if b.Empty() {
		return nil
	}
	for _, f := range rank.Fields {
		if err := f.holds(b.Grow(n.stencil.Radius())); err != nil {
			return err
		}
	}
	if !grouped(n.stencil, rank.Fields[0], rank.Fields[1], b, groupBytes/n.real.Size()) {
		return fmt.Errorf("kernels: a step of points that lie on no multiple of %d bytes", groupBytes)
	}
	if n := rank.Fields[0].Layout.Owned.Size(); max(n[0], n[1], n[2]) >= 1<<31 || b != rank.Interior && b.Points() >= 1<<31 {
		return fmt.Errorf("kernels: a step of %v points, with %d in a box; fewer than 2^31 are possible along an axis, and in one of the boundary region", n, b.Points())
	}
	return nil
}

// checkStore returns an error unless all points of a store are in the boundary region, and
// go to ghosts that no interior reads.
func (n *stepGroup) checkStore(rank StepRank, s GhostStore) error {
	if s.To < 0 || s.To >= len(n.ranks) || s.Send.Empty() || s.Send.Size() != s.Ghost.Size() || len(s.Odd) > maxOdd {
		return fmt.Errorf("kernels: a store of %v into %v of rank %d", s.Send, s.Ghost, s.To)
	}
	swept := int64(0)
	for _, b := range rank.Boundary {
		swept += b.Intersect(s.Send).Points()
	}
	if swept != s.Send.Points() {
		return fmt.Errorf("kernels: a store of %v, which is not all in the boundary region %v", s.Send, rank.Boundary)
	}
	to := n.ranks[s.To]
	if in := to.Interior; !in.Empty() && !in.Grow(n.stencil.Radius()).Intersect(s.Ghost).Empty() {
		return fmt.Errorf("kernels: a store into %v, which the interior %v of rank %d reads", s.Ghost, in, s.To)
	}
	for _, o := range s.Odd {
		if err := rank.Fields[0].holds(s.Send.Shift(o)); err != nil {
			return err
		}
	}
	return to.Fields[0].holds(s.Ghost)
}

// connect finds out who a rank's neighbours are: the ranks that it stores into, or that store into
// it.
func (n *stepGroup) connect() (err error) {
	var devices []*streams.Device
	neighbours := make([][]int, len(n.ranks))
	for i, rank := range n.ranks {
		devices = append(devices, rank.Device)
		for k := range n.ranks {
			if k != i && (n.stores(i, k) || n.stores(k, i)) {
				neighbours[i] = append(neighbours[i], k)
			}
		}
	}
	n.flags, err = flags.NewNetwork(devices, neighbours, maxStores(n.stencil), 1, 1)
	return err
}

// part finds out which slabs of a rank deal with which of its neighbours.
func (n *stepGroup) part(i int) (p stepPart) {
	for _, b := range n.ranks[i].Boundary {
		if !b.Empty() {
			p.slabs = append(p.slabs, n.slab(i, b))
		}
	}
	n.shareBlocks(i, p.slabs)
	return p
}

// stores reports whether a rank stores into another.
func (n *stepGroup) stores(from, to int) bool {
	return slices.ContainsFunc(n.ranks[from].Stores, func(s GhostStore) bool { return s.To == to })
}

// slab returns a box of the boundary region with those of a rank's stores that take
// points from it, and those of its neighbours that get them or whose ghosts it reads.
//
// In step n a block of a slab waits until all blocks of its neighbours' slabs that deal with
// this rank have finished step n-1. So all that it reads is there: who stores into ghosts deals
// with their owner. And nobody needs what it overwrites, the ghosts of step n-2 that were read
// in step n-1: who reads ghosts deals with the rank that stores there, be it across a face, an
// edge or a corner, and whether or not it stores anything in return. Interiors read no ghosts
// that are stored to, see checkStore. Ghosts of its own a rank stores to for its next step.
func (n *stepGroup) slab(i int, box domain.Box) boundarySlab {
	slab := boundarySlab{box: box}
	reads := box.Grow(n.stencil.Radius())
	concerned := map[int]bool{}
	for t, s := range n.ranks[i].Stores {
		if !s.Send.Intersect(box).Empty() {
			slab.stores = append(slab.stores, t)
			concerned[s.To] = true
		}
	}
	for at, k := range n.flags.Neighbours(i) {
		for _, s := range n.ranks[k].Stores {
			concerned[k] = concerned[k] || s.To == i && !s.Ghost.Intersect(reads).Empty()
		}
		if concerned[k] {
			slab.neighbours = append(slab.neighbours, at)
		}
	}
	return slab
}

// expected returns how many blocks of a rank count a step for another.
func (n *stepGroup) expected(rank, other int) (blocks int64) {
	at := n.flags.Place(other, rank)
	for _, slab := range n.parts[rank].slabs {
		if slices.Contains(slab.neighbours, at) {
			blocks += slab.blocks
		}
	}
	return blocks
}

// residentThreads is how many threads a block of a resident kernel has; there is one
// block on each multiprocessor. A stencil of many points needs many registers.
func residentThreads(s stencil.Stencil) int {
	if s.Points() <= 7 {
		return 1024
	}
	return 512
}

// threads returns how many threads the blocks of a rank have along x and y.
func (n *stepGroup) threads(i int) [2]int {
	if n.kind == FusedStep {
		return n.ranks[i].shape(formOf(n.stencil, n.real)).Block
	}
	return [2]int{32, residentThreads(n.stencil) / 32}
}

// shareBlocks gives slabs their thread blocks. Those of a fused step keep their place on a
// multiprocessor while they wait for a neighbour and for the link: a thread has so many points
// that there is about one such block for each. Of steps that stay on the device slabs have no
// more than their share of it, at twice the work of other points.
func (n *stepGroup) shareBlocks(i int, slabs []boundarySlab) {
	rank, block, total := n.ranks[i], n.threads(i), int64(0)
	threads := int64(block[0] * block[1])
	for _, slab := range slabs {
		total += slab.box.Points()
	}
	cores := int64(rank.Device.Cores)
	most := max(int64(len(slabs)), cores*2*total/max(1, 2*total+rank.Interior.Points()))
	if !rank.Interior.Empty() {
		most = min(most, cores-1)
	}
	each := ceil(total, threads*cores) // points a thread
	for at := range slabs {
		slab := &slabs[at]
		if points := slab.box.Points(); n.kind == FusedStep {
			slab.blocks = ceil(points, threads*each)
		} else {
			slab.blocks = max(1, min(ceil(points, threads), most*points/total))
		}
	}
}
