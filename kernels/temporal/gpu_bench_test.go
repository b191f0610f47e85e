package temporal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// BenchmarkPasses times all kernels for passes on a GPU, for three kinds of sides or moving walls, with norms of
// the last step or, for 5 points, of every step, and without. Gpoint/s counts each level of a point. Blocks share
// the box with the fastest weight, see shape.
func BenchmarkPasses(b *testing.B) {
	set := testdevices.GPUs(b)
	for _, c := range []passBench{
		{3, 7, domain.Vec{512, 512, 512}, domain.Float64},
		{3, 7, domain.Vec{768, 768, 768}, domain.Float32},
		{2, 5, domain.Vec{16384, 16384, 1}, domain.Float64},
		{2, 5, domain.Vec{16384, 16384, 1}, domain.Float32},
		{2, 5, domain.Vec{4096, 4096, 1}, domain.Float64},
		{2, 5, domain.Vec{4096, 4096, 1}, domain.Float32},
		{3, 13, domain.Vec{512, 512, 512}, domain.Float64},
		{3, 13, domain.Vec{768, 768, 768}, domain.Float32},
		{3, 19, domain.Vec{512, 512, 512}, domain.Float64},
		{3, 27, domain.Vec{512, 512, 512}, domain.Float64},
		{3, 27, domain.Vec{768, 768, 768}, domain.Float32},
	} {
		for name, all := range c.options() {
			b.Run(c.name()+"/"+name, func(b *testing.B) {
				for _, o := range all {
					c.run(b, set, o)
				}
			})
		}
	}
}

// name includes the size only of squares that are not the largest.
func (c *passBench) name() string {
	if c.size[0] == 4096 {
		return fmt.Sprintf("points=%d/%s/size=%d", c.points, c.real, c.size[0])
	}
	return fmt.Sprintf("points=%d/%s", c.points, c.real)
}

// options returns the options of passes, by name.
func (c *passBench) options() map[string][]Options {
	all := map[string][]Options{"plain": {{}}, "moving": {{Moving: true}}, "norms": {{Norms: 1}}}
	if c.dims == 2 {
		all["norms-fast"] = []Options{{Norms: 1, Sums: sums.Fast}}
		for norms := 2; norms <= MaxNorms; norms++ {
			all["norms-every"] = append(all["norms-every"], Options{Norms: norms, Deepest: norms})
			all["norms-every-fast"] = append(all["norms-every-fast"], Options{Norms: norms, Deepest: norms, Sums: sums.Fast})
		}
	}
	return all
}

// passBench is a set of passes of the heat equation on a box.
type passBench struct {
	dims, points int
	size         domain.Vec
	real         domain.Element
}

// passRig is the common state of the passes of a benchmark.
type passRig struct {
	device *streams.Device
	timer  *flags.Timer
	passes *Passes
	box    domain.Box
	arrays [2]kernels.Array // source and destination of passes
}

func (c *passBench) run(b *testing.B, set *testdevices.Set, o Options) {
	r := c.rig(b, set, o)
	if r == nil {
		return
	}
	sides := []Sides{{Fixed, Fixed, Fixed, Fixed, Fixed, Fixed}}
	if !o.Moving {
		sides = append(sides, Sides{Mirror, Mirror, Mirror, Mirror, Mirror, Mirror}, Sides{})
	}
	for _, sides := range sides {
		for _, depth := range []int{2, 3, 4, 6, 8, 10, 12} {
			r.depth(b, depth, sides, o)
		}
	}
}

// rig prepares everything; it is nil if such passes are not possible.
func (c *passBench) rig(b *testing.B, set *testdevices.Set, o Options) *passRig {
	var s stencil.Stencil
	for _, kind := range stencil.Kinds(c.dims) {
		if kind.Points == c.points {
			s = test.Must(stencil.HeatOf(kind, slices.Repeat([]float64{1}, c.dims), 1, 0.05))(b)
		}
	}
	r := &passRig{device: set.Devices[0], box: domain.Box{Hi: c.size}}
	if o.Moving && s.AxisRadius(0) > 1 {
		return nil // fixed walls do not move then
	}
	width := domain.Radius{}
	for a := range s.Dims {
		width.Minus[a], width.Plus[a] = 12, 12
	}
	l := test.Must(domain.NewLayout(r.box, width, c.real.Size()))(b)
	r.passes = test.Must(New(set.Compiler, r.device, s, c.real, l, o))(b)
	r.passes.compileAll()
	r.timer = test.Must(flags.NewTimer(r.device, time.Minute))(b)
	b.Cleanup(func() { r.timer.Close() })
	for i := range r.arrays {
		r.arrays[i] = kernels.Array{Data: r.random(b, l.Bytes(), c.real), Layout: l}
	}
	return r
}

func (r *passRig) random(b *testing.B, bytes int64, real domain.Element) streams.Span {
	m := test.Must(r.device.Alloc(bytes))(b)
	b.Cleanup(func() { m.Close() })
	test.Check(b, fillRandom(r.device, r.timer.Stream, m, real))
	return m.All()
}

// depth times all kernels of a depth.
func (r *passRig) depth(b *testing.B, depth int, sides Sides, o Options) {
	g, of := r.passes, More{Box: r.box}
	for i := range 6 {
		if o.Moving && i/2 < r.passes.stencil.Dims {
			w := Face{Box: r.box}
			w.Box.Lo[i/2] += i % 2 * r.box.Hi[i/2]
			w.Box.Lo[i/2] -= (i + 1) % 2
			w.Box.Hi[i/2] = w.Box.Lo[i/2] + 1
			w.Values = r.random(b, w.Box.Points()*int64(depth-1)*int64(r.passes.real.Size()), r.passes.real)
			of.Faces[i] = w
		}
	}
	if o.Norms > 0 {
		reducer := test.Must(reduce.NewNormReducer(g.compiler, r.device, r.passes.real, o.Sums))(b)
		parts := test.Must(reducer.Parts(o.Norms, r.passes.Parts(r.box, sides)))(b)
		b.Cleanup(func() { parts.Close() })
		for n := range o.Norms {
			of.Parts = append(of.Parts, parts.Span(n))
		}
	}
	pass := func(one shape) (*streams.Kernel, error) {
		spec := test.Must(g.spec("pass", one, r.arrays[0], r.arrays[1], r.box, sides, of))(b)
		return r.device.NewKernel(spec)
	}
	for _, one := range g.candidates {
		if one.depth != depth {
			continue
		}
		b.Run(fmt.Sprintf("depth=%d/sides=%v/%s%v", depth, sides[0], one.name, one.program.Defines[1:]), func(b *testing.B) {
			end := time.Now().Add(time.Minute)
			first := tunedDepth{one.String(), one.weight, test.Must(timeShape(r.timer, one, pass, end))(b)}
			best := test.Must(otherWeights(r.timer, one, first, pass, end))(b)
			one.weight = best.Weight
			k := test.Must(pass(one))(b)
			defer k.Close()
			var took []float64
			for range 12 {
				took = append(took, r.launch(b, k).Seconds())
			}
			slices.Sort(took)
			for b.Loop() {
			}
			b.ReportMetric(float64(r.box.Points())*float64(depth)/took[len(took)/2]/1e9, "Gpoint/s")
			b.ReportMetric(float64(one.weight), "weight")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// launch returns the duration of one launch.
func (r *passRig) launch(b *testing.B, k *streams.Kernel) time.Duration {
	return test.Must(r.timer.Time(false, nil, func() error { return r.timer.Stream.Launch(k) }))(b)
}

// fillRandom fills memory with numbers that memory cannot compress.
func fillRandom(d *streams.Device, s *streams.Stream, m *streams.Memory, real domain.Element) error {
	const piece = 32 << 20
	host, err := d.AllocPinned(piece)
	if err != nil {
		return err
	}
	defer host.Close()
	if real == domain.Float32 {
		fill(streams.View[float32](host.Bytes()))
	} else {
		fill(streams.View[float64](host.Bytes()))
	}
	for at := int64(0); at < m.Size(); at += piece {
		n := min(piece, m.Size()-at)
		if err := s.Copy(m.Span(at, n), host.Span(0, n)); err != nil {
			return err
		}
	}
	return s.Sync(kerneltest.Limit)
}

func fill[T rows.Float](v []T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = T(rng.Float64() + 0.5)
	}
}
