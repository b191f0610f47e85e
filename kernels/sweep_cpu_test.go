package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// sweepsOnCPU is sweep.cu for one stencil, run on the CPU, and arrays of one layout.
type sweepsOnCPU[T rows.Float] struct {
	*bench
	stencil  stencil.Stencil
	sweeper  *kernels.Sweeper
	layout   domain.Layout
	src, dst kernels.Array
}

// lay gives the arrays a layout.
func (c *sweepsOnCPU[T]) lay(l domain.Layout) {
	c.t.Helper()
	c.layout = l
	for _, a := range []*kernels.Array{&c.src, &c.dst} {
		*a = kernels.Array{Data: must(c.device.Alloc(l.Bytes()))(c.t).All(), Layout: l}
	}
}

// check sweeps the boxes, without and with norms, and compares with plain loops. Nothing but the boxes
// changes.
func (c *sweepsOnCPU[T]) check(boxes ...domain.Box) {
	c.t.Helper()
	src, before := randomsOf[T](c.layout.Length), randomsOf[T](c.layout.Length)
	want, sum := append([]T(nil), before...), kernels.Norms{}
	for _, b := range boxes {
		eachPoint(b, func(p domain.Vec) {
			o := c.layout.Offset(p)
			want[o] = kernels.PlainSum(c.stencil, c.layout, src, p)
			u, d := float64(want[o]), float64(want[o])-float64(src[o])
			sum.Add(kernels.Norms{MaxChange: math.Abs(d), SumChange2: d * d, Max: math.Abs(u), Sum2: u * u})
		})
	}
	putInto(c.bench, c.src.Data, src)
	launches, total, err := c.sweeper.Measure(c.dst, c.src, kernels.BoxSet{Name: "measured", Boxes: boxes})
	if err != nil {
		c.t.Fatal(err)
	}
	plain := must(c.sweeper.Sweep(c.dst, c.src, boxes...))(c.t)
	for _, k := range []*streams.Kernel{plain, launches[0]} {
		putInto(c.bench, c.dst.Data, before)
		c.do(c.stream.Launch(k))
		for i, got := range getFrom[T](c.bench, c.dst.Data) {
			if got != want[i] && (got == got || want[i] == want[i]) {
				c.t.Fatalf("%s of boxes %v: element %d is %v, not %v", k.Name(), boxes, i, got, want[i])
			}
		}
	}
	c.do(total.Queue(c.stream))
	if got := total.Result(); got.MaxChange != sum.MaxChange || got.Max != sum.Max || !near(got.SumChange2, sum.SumChange2) || !near(got.Sum2, sum.Sum2) {
		c.t.Fatalf("boxes %v: norms %+v, not %+v", boxes, got, sum)
	}
	c.do(plain.Close(), total.Close())
}

// putInto and getFrom copy values to a device and back.
func putInto[T any](b *bench, dst streams.Span, values []T) {
	b.t.Helper()
	host := must(b.device.AllocPinned(dst.Length))(b.t)
	copy(streams.View[T](host.Bytes()), values)
	b.do(b.stream.Copy(dst, host.All()), b.stream.Sync(limit), host.Close())
}

func getFrom[T any](b *bench, src streams.Span) []T {
	b.t.Helper()
	host := must(b.device.AllocPinned(src.Length))(b.t)
	b.do(b.stream.Copy(host.All(), src))
	values := append([]T(nil), streams.View[T](host.Bytes())...)
	b.do(host.Close())
	return values
}

func randomsOf[T rows.Float](n int64) []T {
	v := make([]T, n)
	for i, x := range noise(n) {
		v[i] = T(x)
	}
	return v
}

// The kernels of sweep.cu, run on the CPU, give the bits of plain loops for every stencil, in every
// shape, over boxes that begin and end anywhere, and touch nothing else.
func TestSweepsOnCPU(t *testing.T) {
	for _, s := range kernels.EveryStencil() {
		name := fmt.Sprintf("dims=%d/points=%d/groups=%d", s.Dims, s.Points(), len(s.Groups))
		t.Run(name+"/float64", func(t *testing.T) { sweepOnCPU[float64](t, s, kernels.Float64) })
		t.Run(name+"/float32", func(t *testing.T) { sweepOnCPU[float32](t, s, kernels.Float32) })
	}
}

func sweepOnCPU[T rows.Float](t *testing.T, s stencil.Stencil, r kernels.Real) {
	t.Parallel()
	b := newBench(t, testdevices.CPU(t, 1))
	c := &sweepsOnCPU[T]{bench: b, stencil: s, sweeper: must(b.compiler.NewSweeper(b.device, s, r))(t)}
	layout := func(n domain.Vec) domain.Layout {
		if s.Dims == 2 {
			n[1], n[2] = n[1]*n[2], 1
		}
		return must(domain.NewLayout(domain.Box{Hi: n}, s.Radius(), r.Size()))(t)
	}
	c.lay(layout(domain.Vec{40, 3, 9}))
	for width := 1; width <= 40; width++ { // large boxes and thin ones
		b := c.layout.Owned
		b.Lo[0] = []int{0, 1, 2, 3, 7}[width%5]
		b.Hi[0] = min(40, b.Lo[0]+width)
		c.check(b)
	}
	c.lay(layout(domain.Vec{37, 5, 11}))
	shapes := c.sweeper.Shapes()
	for i := range shapes {
		c.sweeper.UseShape(shapes[len(shapes)-1-i])
		c.check(c.layout.Owned)
	}
	inner, slabs := domain.Split(c.layout.Owned, s.Radius())
	c.check(slabs...)
	c.check(inner)
	for _, n := range []domain.Vec{{400, 2, 60}, {20, 37, 9}, {40, 1, 16}} { // several blocks along x and along y; one row
		c.lay(layout(n))
		c.check(c.layout.Owned)
	}
	if s.Dims == 2 && s.Points() == 5 { // more norms of blocks than one block sums
		c.sweeper.UseShape(kernels.Shape{Block: shapes[0].Block, Layers: 2})
		c.lay(layout(domain.Vec{40, 8300, 1}))
		c.check(c.layout.Owned)
		c.sweeper.UseShape(shapes[0])
	}
	c.lay(must(domain.NewStridedLayout(domain.Box{Hi: domain.Vec{21, 9, 1}}, s.Radius(), r.Size(), 1801, 37, 37*19))(t))
	c.check(c.layout.Owned)
}
