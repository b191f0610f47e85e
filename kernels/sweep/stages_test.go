package sweep

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// stageTorus is a grid with physical faces along x that is periodic along the other axes, divided for four
// devices. Steps of one stage are applied repeatedly.
type stageTorus struct {
	t      *testing.T
	sample sample
	plan   *plan
	width  domain.Radius // of the boundary region and of all ghosts, equal on both sides
	cut    *domain.Decomposition
	laid   [][]kernels.Array // by rank, the last allocated arrays
}

func newStageTorus(t *testing.T, s sample) *stageTorus {
	t.Helper()
	c := &stageTorus{t: t, sample: s, plan: test.Must(newPlan(s.point, s.accesses))(t)}
	size, parts, periodic := []int{75, 41}, domain.Vec{2, 2, 1}, [3]bool{false, true}
	if s.point.Dims == 3 {
		size, parts, periodic = []int{37, 25, 22}, domain.Vec{1, 2, 2}, [3]bool{false, true, true}
	}
	r := c.plan.radius()
	for a := range s.point.Dims {
		w := max(1, r.Minus[a], r.Plus[a])
		if a == 0 {
			w = max(w, 2) // a face value and a layer behind it
		}
		c.width.Minus[a], c.width.Plus[a] = w, w
	}
	c.cut = test.Must(domain.Decompose(test.Must(domain.NewGrid(size, periodic[:len(size)]))(t), parts))(t)
	return c
}

// arrays allocates the arrays of all accesses on the device of each rank, filled with the same random numbers in
// all calls.
func (c *stageTorus) arrays(set *testdevices.Set) (all []Arrays) {
	c.t.Helper()
	k := &checker{plan: c.plan, random: rand.New(rand.NewPCG(3, 4))}
	c.laid = nil
	for _, sub := range c.cut.Subdomains {
		var there []kernels.Array
		for _, a := range c.sample.accesses {
			l := test.Must(domain.NewLayout(sub.Box, c.width, a.Element.Size()))(c.t).Constant(a.Constant)
			for range a.components() {
				there = append(there, kernels.Array{Data: test.Must(set.Devices[sub.Rank].Alloc(l.Bytes()))(c.t).All(), Layout: l})
			}
		}
		for i, content := range k.fill(there) {
			c.copy(set.Devices[sub.Rank], there[i].Data, content, true)
		}
		all, c.laid = append(all, c.plan.split(there)), append(c.laid, there)
	}
	return all
}

// copy copies bytes into a span of a device, or out of it.
func (c *stageTorus) copy(d *streams.Device, there streams.Span, content []byte, in bool) {
	c.t.Helper()
	stream, host := test.Must(d.NewStream(streams.Normal))(c.t), test.Must(d.AllocPinned(there.Length))(c.t)
	to, from := host.All(), there
	if in {
		copy(host.Bytes(), content)
		to, from = there, host.All()
	}
	test.Check(c.t, errors.Join(stream.Copy(to, from), stream.Sync(checkLimit)))
	copy(content, host.Bytes())
	test.Check(c.t, errors.Join(host.Close(), stream.Close()))
}

// swapped returns the arrays of the other phase: those written in one phase are read in the other.
func (c *stageTorus) swapped(a Arrays) Arrays {
	a = slices.Clone(a)
	for w, written := range c.sample.accesses {
		for r, read := range c.sample.accesses {
			if written.Write && !written.reads() && !read.Write && written.Element == read.Element && written.components() == read.components() {
				a[w], a[r] = a[r], a[w]
				return a
			}
		}
	}
	return a
}

// ranks returns the stage of one phase on all ranks.
func (c *stageTorus) ranks(sweepers []*Sweeper, arrays []Arrays) (ranks []StageRank) {
	for i, sub := range c.cut.Subdomains {
		r := StageRank{Sweeper: sweepers[i], Arrays: arrays[i]}
		r.Interior, r.Boundary = domain.Split(sub.Box, c.width)
		for _, dir := range domain.Directions(c.cut.Grid.Dims) {
			to, ok := c.cut.Neighbor(sub.Rank, dir)
			if !ok {
				if dir == (domain.Direction{dir[0]}) {
					r.Stores = append(r.Stores, c.wall(sub, dir, arrays[i])...)
				}
				continue
			}
			send, ghost := domain.SendBox(sub.Box, dir, c.width), domain.GhostBox(c.cut.Subdomains[to].Box, dir.Opposite(), c.width)
			for _, w := range c.plan.writes {
				r.Stores = append(r.Stores, Store{w.access, w.component, kernels.GhostStore{Send: send, Ghost: ghost, To: to}, arrays[to][w.access][w.component]})
			}
		}
		ranks = append(ranks, r)
	}
	return ranks
}

// wall returns the stores behind a physical face: the low one mirrors, and fields of reals are odd about the high
// one, whose values are the first layer of ghosts.
func (c *stageTorus) wall(sub domain.Subdomain, side domain.Direction, arrays Arrays) (all []Store) {
	send := sub.Box
	if side.Positive() {
		send.Lo[0] = send.Hi[0] - 1
	} else {
		send.Hi[0] = send.Lo[0] + 1
	}
	for _, w := range c.plan.writes {
		s := Store{w.access, w.component, kernels.GhostStore{Send: send, Ghost: send.Shift(domain.Vec(side)), To: sub.Rank}, arrays[w.access][w.component]}
		if side.Positive() && w.element.IsReal() {
			s.Ghost, s.Odd = s.Ghost.Shift(domain.Vec(side)), []domain.Vec{domain.Vec(side)}
		}
		all = append(all, s)
	}
	return all
}

// stepsOf queues four steps, the third with norms and reductions, and waits for them.
type stepsOf func(c *stageTorus, phases [][][]StageRank, queues []*streams.Stream) (totals []*Totals, close func() error)

// run runs the steps, and returns the content of all arrays and the totals of each rank.
func (c *stageTorus) run(set *testdevices.Set, steps stepsOf) (held [][]byte, totals [][]float64) {
	c.t.Helper()
	arrays := c.arrays(set)
	var other []Arrays
	var sweepers []*Sweeper
	var queues []*streams.Stream
	for i, d := range set.Devices {
		other = append(other, c.swapped(arrays[i]))
		sweepers = append(sweepers, test.Must(New(set.Compiler, d, c.sample.point, c.sample.accesses))(c.t))
		queues = append(queues, test.Must(d.NewStream(streams.Normal))(c.t))
		for _, peer := range set.Devices {
			if d != peer && d.Backend != streams.Host {
				c.do(d.EnablePeer(peer))
			}
		}
	}
	phases := [][][]StageRank{{c.ranks(sweepers, arrays)}, {c.ranks(sweepers, other)}}
	found, close := steps(c, phases, queues)
	for rank, t := range found {
		if t != nil {
			totals = append(totals, c.plan.values(slices.Clone(t.host.Bytes())))
		}
		for _, a := range slices.Concat(arrays[rank]...) {
			content := make([]byte, a.Data.Length)
			c.copy(set.Devices[rank], a.Data, content, false)
			held = append(held, content)
		}
	}
	c.do(close())
	return held, totals
}

// moment is the moment of a step.
func moment(step int64) Moment { return Moment{Step: step, Start: 0.25, Length: 0.1} }

// swept runs the steps on CPU devices by sweeps, and copies their results into ghosts.
func (c *stageTorus) swept(phases [][][]StageRank, queues []*streams.Stream) (totals []*Totals, close func() error) {
	c.t.Helper()
	var open streams.Resources
	totals = make([]*Totals, len(queues))
	for step := int64(1); step <= 4; step++ {
		ranks := phases[step%2][0]
		for rank, r := range ranks {
			name, boxes := "sweep", []domain.Box{r.owned()}
			launch := test.Must(r.Sweeper.Sweep(name, r.Arrays, boxes...))(c.t)
			open.Add(launch)
			if step == 3 && c.plan.totals() > 0 {
				measured, t, err := r.Sweeper.Measure(r.Arrays, Portion{name, boxes})
				c.do(err)
				open.Add(t)
				launch, totals[rank] = measured[0], t
			}
			c.do(launch.Set(moment(step), nil))
			c.do(queues[rank].Launch(launch.Kernel))
			if step == 3 && totals[rank] != nil {
				c.do(totals[rank].Queue(queues[rank]))
			}
			c.do(queues[rank].Sync(time.Minute))
		}
		for _, r := range ranks {
			r.storeOnHost(r.owned())
		}
	}
	return totals, open.Close
}

// fused runs the steps by one launch per stage, and returns the totals, by rank.
func (c *stageTorus) fused(phases [][][]StageRank, queues []*streams.Stream) (totals []*Totals, close func() error) {
	c.t.Helper()
	g := test.Must(NewFusedStages(phases, time.Minute))(c.t)
	for rank, q := range queues {
		for step := int64(1); step <= 4; step++ {
			f, measured := g.Stage(int(step%2), 0, rank), step == 3
			c.do(f.Queue(q, moment(step), nil, measured))
			if measured && f.Totals() != nil {
				c.do(f.Totals().Queue(q))
			}
		}
		totals = append(totals, g.Stage(1, 0, rank).Totals())
	}
	for rank, q := range queues {
		c.do(errors.Join(q.Sync(time.Minute), g.Stage(0, 0, rank).Err()))
	}
	return totals, g.Close
}

// resident runs them by launches of three steps, the last of which is measured, and of one.
func (c *stageTorus) resident(phases [][][]StageRank, queues []*streams.Stream) (totals []*Totals, close func() error) {
	c.t.Helper()
	g := test.Must(NewResidentSteps(phases, 1, time.Minute, true, nil))(c.t)
	for rank, q := range queues {
		r := g.Rank(rank)
		c.do(r.Queue(q, moment(1), 3, true))
		if t := r.Totals(3%len(phases), 0); t != nil {
			c.do(t.Queue(q))
		}
		c.do(r.Queue(q, moment(4), 1, false))
		totals = append(totals, r.Totals(3%len(phases), 0))
	}
	for rank, q := range queues {
		c.do(errors.Join(q.Sync(time.Minute), g.Rank(rank).Err()))
	}
	return totals, g.Close
}

func (c *stageTorus) do(err error) {
	c.t.Helper()
	test.Check(c.t, err)
}

// Fused stages and resident steps, whose CUDA sources run on emulated GPUs that wait for each other, leave the
// same memory as sweeps and copies, and the same norms and reductions: for samples, and for some linear stencils.
func TestStagesOnCPU(t *testing.T) {
	all := samples()
	for i, s := range linearSamples(t) {
		if i%3 == 0 {
			all = append(all, s)
		}
	}
	for _, s := range testdevices.Again(4, testdevices.Some(4, all)) {
		t.Run(s.point.Name, func(t *testing.T) {
			t.Parallel()
			c := newStageTorus(t, s)
			want, wanted := c.run(testdevices.Host(t, 4), (*stageTorus).swept)
			for name, steps := range map[string]stepsOf{"fused": (*stageTorus).fused, "resident": (*stageTorus).resident} {
				got, found := c.run(testdevices.CPU(t, 4), steps)
				c.compare(got, want)
				c.compareTotals(found, wanted)
				if t.Failed() {
					t.Fatal(name)
				}
			}
		})
	}
}

// Source and Go counterpart of a point function with all kinds of sums also agree with fast sums.
func TestFastSumsOfSourceAndCounterpart(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		s := waveSample()
		s.point.Sums = sums.Fast
		test.Report(t, Check(set.Compiler, set.Devices[0], s.point, s.accesses, CheckOptions{}))
	})
}

func (c *stageTorus) compare(got, want [][]byte) {
	c.t.Helper()
	for rank, arrays := range c.laid {
		n := len(arrays)
		if err := (&checker{plan: c.plan}).sameArrays(arrays, want[rank*n:][:n], got[rank*n:][:n],
			want[rank*n:][:n], Moment{}); err != nil {
			c.t.Errorf("rank %d of boxes %v: %v", rank, c.cut.Subdomains[rank].Box, err)
		}
	}
}

func (c *stageTorus) compareTotals(got, want [][]float64) {
	c.t.Helper()
	for rank := range want {
		for i, w := range want[rank] {
			if got[rank][i] != w {
				c.t.Errorf("rank %d: total %d: got %v, want %v", rank, i, got[rank][i], w)
			}
		}
	}
}

// Boxes of the boundary region that involve no other rank become part of the interior, except for linear stencils:
// in a torus divided along y and z, those at the faces along x.
func TestSlabsOfOneRankBelongToItsInterior(t *testing.T) {
	for _, s := range append(samples(), linearSamples(t)...) {
		if s.point.Dims != 3 {
			continue
		}
		c := newStageTorus(t, s)
		set := testdevices.Host(t, len(c.cut.Subdomains))
		var sweepers []*Sweeper
		for _, d := range set.Devices {
			sweepers = append(sweepers, test.Must(New(set.Compiler, d, s.point, s.accesses))(t))
		}
		before := c.ranks(sweepers, c.arrays(set))
		g := test.Must(newStageGroup([][][]StageRank{{before}}, time.Second))(t)
		defer g.resources.Close()
		for rank, r := range g.ranks[0][0] {
			owned := c.cut.Subdomains[rank].Box
			whole := r.Interior.Lo[0] == owned.Lo[0] && r.Interior.Hi[0] == owned.Hi[0]
			if r.core != before[rank].Interior || whole != (s.point.linear == nil) || whole != r.storesInside() {
				t.Errorf("%s: interior %[3]v of rank %[2]d: got %[4]v with core %[5]v", s.name(), rank, before[rank].Interior, r.Interior, r.core)
			}
			points := r.Interior.Points()
			for _, b := range r.Boundary {
				points += b.Points()
			}
			if points != owned.Points() {
				t.Errorf("%s: rank %d: got %d of %d points", s.name(), rank, points, owned.Points())
			}
		}
	}
}
