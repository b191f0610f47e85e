package kernels_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepTorus is a grid that is cut for some devices, periodic along x and between walls along
// the other axes: low ones that mirror, and high ones that fields are odd about where the
// stencil reaches two points.
type stepTorus struct {
	t       *testing.T
	stencil stencil.Stencil
	real    kernels.Real
	cut     *domain.Decomposition
	set     *testdevices.Set
}

func newStepTorus(t *testing.T, s stencil.Stencil, r kernels.Real, size []int, parts domain.Vec) *stepTorus {
	t.Helper()
	return &stepTorus{t: t, stencil: s, real: r, cut: must(domain.Decompose(must(domain.NewGrid(size, [3]bool{true}))(t), parts))(t)}
}

// ranks returns what the devices do, with fields of their own.
func (c *stepTorus) ranks(shape kernels.Shape) (ranks []kernels.StepRank) {
	c.t.Helper()
	w := c.stencil.Radius()
	for _, sub := range c.cut.Subdomains {
		e := kernels.StepRank{Device: c.set.Devices[sub.Rank], Shape: shape}
		for f := range e.Fields {
			l := must(domain.NewLayout(sub.Box, w, c.real.Size()))(c.t)
			m := must(e.Device.Alloc(l.Bytes()))(c.t)
			c.t.Cleanup(func() { m.Close() })
			e.Fields[f] = kernels.Array{Data: m.All(), Layout: l}
		}
		e.Interior, e.Boundary = domain.Split(sub.Box, w)
		for _, dir := range domain.Directions(c.cut.Grid.Dims) {
			if to, ok := c.cut.Neighbour(sub.Rank, dir); ok && c.reads(dir) {
				ghost := domain.GhostBox(c.cut.Subdomains[to].Box, dir.Opposite(), w)
				e.Stores = append(e.Stores, kernels.GhostStore{Send: domain.SendBox(sub.Box, dir, w), Ghost: ghost, To: to})
			} else if a := dir.Axis(); !ok && a >= 0 {
				e.Stores = append(e.Stores, c.wall(sub, dir, a)...)
			}
		}
		ranks = append(ranks, e)
	}
	return ranks
}

// reads reports whether the stencil has points in a direction.
func (c *stepTorus) reads(dir domain.Direction) bool {
	return slices.ContainsFunc(c.stencil.Offsets(), func(o domain.Vec) bool {
		for a := range o {
			if (o[a] == 0) != (dir[a] == 0) || o[a]*dir[a] < 0 {
				return false
			}
		}
		return true
	})
}

// wall returns the stores behind a wall.
func (c *stepTorus) wall(sub domain.Subdomain, side domain.Direction, axis int) (all []kernels.GhostStore) {
	reach := c.stencil.AxisRadius(axis)
	ghost := domain.GhostBox(sub.Box, side, c.stencil.Radius())
	for n := range reach { // layers, from the wall
		send, to := sub.Box, ghost
		if side.Positive() {
			send.Lo[axis], to.Lo[axis] = sub.Box.Hi[axis]-1-n, ghost.Lo[axis]+n
		} else {
			send.Lo[axis], to.Lo[axis] = sub.Box.Lo[axis]+n, ghost.Hi[axis]-1-n
		}
		send.Hi[axis], to.Hi[axis] = send.Lo[axis]+1, to.Lo[axis]+1
		st := kernels.GhostStore{Send: send, Ghost: to, To: sub.Rank}
		if side.Positive() && reach == 2 {
			if n == 1 { // the first layer is the wall's
				continue
			}
			st.Ghost, st.Odd = to.Shift(domain.Vec(side)), []domain.Vec{domain.Vec(side)}
		}
		all = append(all, st)
	}
	return all
}

// fill fills all fields, with the values that all calls take, and returns what they hold.
func (c *stepTorus) fill(ranks []kernels.StepRank, values []float64) {
	c.t.Helper()
	c.each(ranks, func(b *bench, a kernels.Array) {
		n := int(a.Layout.Length)
		if c.real == kernels.Float32 {
			narrow := make([]float32, n)
			for i, v := range values[:n] {
				narrow[i] = float32(v)
			}
			putInto(b, a.Data, narrow)
		} else {
			putInto(b, a.Data, values[:n])
		}
		values = values[n:]
	})
}

func (c *stepTorus) read(ranks []kernels.StepRank) (all [][]byte) {
	c.t.Helper()
	c.each(ranks, func(b *bench, a kernels.Array) { all = append(all, getFrom[byte](b, a.Data)) })
	return all
}

func (c *stepTorus) each(ranks []kernels.StepRank, f func(b *bench, a kernels.Array)) {
	c.t.Helper()
	for _, r := range ranks {
		b := newBench(c.t, &testdevices.Set{Devices: []*streams.Device{r.Device}, Compiler: c.set.Compiler})
		for _, a := range r.Fields {
			f(b, a)
		}
		check(c.t, b.stream.Close())
	}
}

// run makes some steps from the values, the second with norms if launches may have them, and returns
// what all fields hold in the end.
func (c *stepTorus) run(kind kernels.StepKind, shape kernels.Shape, values []float64) [][]byte {
	c.t.Helper()
	ranks := c.ranks(shape)
	c.fill(ranks, values)
	all, err := c.set.Compiler.Steppers(kind, c.stencil, c.real, ranks, time.Minute)
	check(c.t, err)
	var queues []*streams.Stream
	for i, s := range all {
		queues = append(queues, must(ranks[i].Device.NewStream(streams.Normal))(c.t))
		for n := range stepsOnCPU {
			if n == 1 && s.Norms(0) != nil {
				check(c.t, s.QueueMeasured(queues[i], 1))
			} else {
				check(c.t, s.Queue(queues[i], 1))
			}
		}
	}
	for i, q := range queues {
		check(c.t, q.Sync(time.Minute))
		check(c.t, all[i].Err())
	}
	held := c.read(ranks)
	for i, s := range all {
		check(c.t, s.Close())
		check(c.t, queues[i].Close())
	}
	return held
}

const stepsOnCPU = 3

// The kernels of steps, run on the CPU by devices that wait for each other, leave in all memory what the
// host's version leaves there, for every stencil.
func TestStepsOnCPU(t *testing.T) {
	for _, s := range kernels.EveryStencil() {
		for _, r := range []kernels.Real{kernels.Float64, kernels.Float32} {
			t.Run(fmt.Sprintf("dims=%d/points=%d/groups=%d/%s", s.Dims, s.Points(), len(s.Groups), r), func(t *testing.T) {
				t.Parallel()
				size, parts := []int{75, 41}, domain.Vec{2, 2, 1}
				if s.Dims == 3 {
					size, parts = []int{37, 12, 11}, domain.Vec{1, 2, 2}
				}
				c := newStepTorus(t, s, r, size, parts)
				values := noise(1 << 17)
				c.set = testdevices.Host(t, 4)
				want := c.run(kernels.FusedStep, kernels.Shape{}, values)
				c.set = testdevices.CPU(t, 4)
				shapes := must(c.set.Compiler.NewSweeper(testdevices.Host(t, 1).Devices[0], s, r))(t).Shapes()
				for _, shape := range []kernels.Shape{{}, shapes[len(shapes)-1]} {
					c.compare(fmt.Sprintf("fused, shape %v", shape), c.run(kernels.FusedStep, shape, values), want)
				}
				c.compare("resident", c.run(kernels.StreamedSteps, kernels.Shape{}, values), want)
			})
		}
	}
}

func (c *stepTorus) compare(what string, got, want [][]byte) {
	c.t.Helper()
	for i := range want {
		if bytes.Equal(got[i], want[i]) {
			continue
		}
		for at := range want[i] {
			if got[i][at] != want[i][at] {
				c.t.Fatalf("%s: field %d of rank %d has other bits from byte %d on", what, i%2, i/2, at)
			}
		}
	}
}
