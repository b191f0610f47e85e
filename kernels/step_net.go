package kernels

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepNet is the ends of steps that devices make together, and who waits for whom. Each
// end has a line of memory for each neighbour, with the count of its blocks that have
// finished steps, and a last line for its own blocks.
type stepNet struct {
	kind    StepKind
	stencil stencil.Stencil
	real    Real
	ends    []StepEnd
	limit   time.Duration
	parts   []stepPart
	counts  []*streams.Memory // by end
	tiled   *tiled            // nil where the steps are no tiles
}

// stepPart is an end with its shells, the boxes of its boundary region, and its
// neighbours: the ends that it stores into, or that store into it.
type stepPart struct {
	neighbours []int
	shells     []shellPart
}

// shellPart is a box of the boundary region, the stores that take points from it, and
// the neighbours that it waits for and that wait for it, by their places in lists.
type shellPart struct {
	box                domain.Box
	stores, neighbours []int
	blocks             int64 // thread blocks that sweep it; 1 on a host device
}

// maxFaces is how many boxes, stores and neighbours an end may have.
const maxFaces = 6

func newStepNet(kind StepKind, s stencil.Stencil, real Real, ends []StepEnd, limit time.Duration) (*stepNet, error) {
	if kind != FusedStep && kind != ResidentSteps && kind != StreamedSteps || real.Size() == 0 || len(ends) == 0 {
		return nil, fmt.Errorf("kernels: steps of kind %q, type %q, on %d devices", kind, real, len(ends))
	}
	if _, ok := s.AsStar(); !ok {
		return nil, fmt.Errorf("kernels: steps with a stencil that is no star of one point along each axis")
	}
	n := &stepNet{kind: kind, stencil: s, real: real, ends: ends, limit: limit, counts: make([]*streams.Memory, len(ends))}
	for i := range ends {
		if err := n.check(i); err != nil {
			return nil, err
		}
	}
	for i := range ends {
		part, err := n.part(i)
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, part)
	}
	if kind == ResidentSteps {
		n.tiled = n.tile()
	}
	return n, nil
}

// check returns an error unless an end's boxes lie in its fields and its stores end in
// ghosts.
func (n *stepNet) check(i int) error {
	end := n.ends[i]
	if slices.ContainsFunc(n.ends[:i], func(e StepEnd) bool { return e.Device == end.Device }) {
		return fmt.Errorf("kernels: two ends of a step on device %v", end.Device)
	}
	if end.Fields[0].Layout != end.Fields[1].Layout || !end.Fields[0].Layout.Padded() {
		return fmt.Errorf("kernels: a step between fields of different layouts, or of a caller's own")
	}
	if len(end.Boundary) > maxFaces || len(end.Stores) > maxFaces {
		return fmt.Errorf("kernels: a boundary region of %d boxes and %d stores; up to %d are possible", len(end.Boundary), len(end.Stores), maxFaces)
	}
	reach := domain.UniformRadius(n.stencil.Dims, 1)
	for _, b := range append(slices.Clone(end.Boundary), end.Interior) {
		if b.Empty() {
			continue
		}
		for _, f := range end.Fields {
			if err := f.holds(b.Grow(reach)); err != nil {
				return err
			}
		}
	}
	for _, s := range end.Stores {
		if s.To < 0 || s.To >= len(n.ends) || s.Send.Empty() || s.Send.Size() != s.Ghost.Size() {
			return fmt.Errorf("kernels: a store of %v into %v of end %d", s.Send, s.Ghost, s.To)
		}
		if err := n.ends[s.To].Fields[0].holds(s.Ghost); err != nil {
			return err
		}
	}
	return nil
}

// part finds out who an end's neighbours are, and which of its shells deal with them.
func (n *stepNet) part(i int) (p stepPart, err error) {
	for k := range n.ends {
		if k != i && (n.stores(i, k) || n.stores(k, i)) {
			p.neighbours = append(p.neighbours, k)
		}
	}
	if len(p.neighbours) > maxFaces {
		return p, fmt.Errorf("kernels: %d neighbours; up to %d are possible", len(p.neighbours), maxFaces)
	}
	for _, b := range n.ends[i].Boundary {
		if !b.Empty() {
			p.shells = append(p.shells, n.shell(i, b, p.neighbours))
		}
	}
	n.shareBlocks(i, p.shells)
	return p, nil
}

// stores reports whether an end stores into another.
func (n *stepNet) stores(from, to int) bool {
	return slices.ContainsFunc(n.ends[from].Stores, func(s GhostStore) bool { return s.To == to })
}

// shell returns a box of the boundary region with those of an end's stores that take
// points from it, and those of its neighbours that get them or whose ghosts it reads.
func (n *stepNet) shell(i int, box domain.Box, neighbours []int) shellPart {
	sh := shellPart{box: box}
	reads := box.Grow(domain.UniformRadius(n.stencil.Dims, 1))
	concerned := map[int]bool{}
	for t, s := range n.ends[i].Stores {
		if !s.Send.Intersect(box).Empty() {
			sh.stores = append(sh.stores, t)
			concerned[s.To] = true
		}
	}
	for at, k := range neighbours {
		for _, s := range n.ends[k].Stores {
			concerned[k] = concerned[k] || s.To == i && !s.Ghost.Intersect(reads).Empty()
		}
		if concerned[k] {
			sh.neighbours = append(sh.neighbours, at)
		}
	}
	return sh
}

// line returns where an end keeps the count of a neighbour, by its place among the end's
// neighbours, or after them that of its own blocks.
func (n *stepNet) line(end, neighbour int) streams.Span {
	return n.counts[end].Span(int64(neighbour)*flagBytes, 8)
}

// place returns the place of one end among the neighbours of another.
func (n *stepNet) place(end, of int) int { return slices.Index(n.parts[of].neighbours, end) }

// expected returns how many blocks of an end count a step for another.
func (n *stepNet) expected(end, other int) (blocks int64) {
	at := n.place(other, end)
	for _, sh := range n.parts[end].shells {
		if slices.Contains(sh.neighbours, at) {
			blocks += sh.blocks
		}
	}
	return blocks
}

// residentThreads is how many threads a block of a resident kernel has; there is one
// block on each multiprocessor.
const residentThreads = 1024

// shareBlocks gives shells their thread blocks: a thread a point, but for steps that stay
// on the device no more than their share of it, at twice the work of other points.
func (n *stepNet) shareBlocks(i int, shells []shellPart) {
	end, threads := n.ends[i], int64(blockSize)
	most := int64(1) << 31
	if n.kind != FusedStep {
		threads = residentThreads
		points := int64(0)
		for _, sh := range shells {
			points += 2 * sh.box.Points()
		}
		cores := int64(end.Device.Cores)
		most = max(int64(len(shells)), cores*points/max(1, points+end.Interior.Points()))
		if !end.Interior.Empty() {
			most = min(most, cores-1)
		}
	}
	total := int64(0)
	for _, sh := range shells {
		total += sh.box.Points()
	}
	for at := range shells {
		sh := &shells[at]
		switch fair := most * sh.box.Points() / total; {
		case end.Device.Backend == streams.Host:
			sh.blocks = 1
		default:
			sh.blocks = max(1, min(fair, (sh.box.Points()+threads-1)/threads))
		}
	}
}
