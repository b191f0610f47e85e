package pack_test

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/kernels/rows"
)

// Ghosts behind each face are set to 2w - u, or to a factor times a point further inside plus a shift, and nothing
// else changes.
func TestReflect(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		t.Run("float64", func(t *testing.T) { reflects[float64](t, kerneltest.NewBench(t, s), domain.Float64) })
		t.Run("float32", func(t *testing.T) { reflects[float32](t, kerneltest.NewBench(t, s), domain.Float32) })
	})
}

func reflects[T rows.Float](t *testing.T, b *kerneltest.Bench, real domain.Element) {
	reflector := test.Must(pack.NewReflector(b.Compiler, b.Device, real))(t)
	box := domain.Box{Lo: domain.Vec{2, 0, 1}, Hi: domain.Vec{39, 12, 11}}
	l := test.Must(domain.NewLayout(box, domain.UniformRadius(3, 1), real.Size()))(t)
	a := kernels.Array{Data: test.Must(b.Device.Alloc(l.Bytes()))(t).All(), Layout: l}
	for axis := range 3 {
		for _, sign := range []int{-1, 1} {
			var side domain.Direction
			side[axis] = sign
			ghosts := domain.GhostBox(box, side, l.Width)
			values := randomsOf[T](l.Length)
			kerneltest.Put(b, a.Data, values)
			b.Do(b.Stream.Launch(test.Must(reflector.Reflect(a, ghosts, side))(t)))
			in := domain.Vec(side.Opposite())
			kerneltest.EachPoint(ghosts, func(p domain.Vec) {
				wall := p.Add(in)
				values[l.Offset(p)] = T(2*values[l.Offset(wall)]) - values[l.Offset(wall.Add(in))]
			})
			holds(b, a.Data, values, "side %v", side)
			in, s := in.Add(in).Add(in), kernels.Affine{Factor: -0.3, Weight: 0.7, By: domain.Vec{2, 5, 3}}
			n := ghosts.Size()
			s.Given.Layout = test.Must(domain.NewStridedLayout(ghosts.Shift(s.By), domain.Radius{}, real.Size(), 0, int64(n[0]), int64(n[0]*n[1])))(t)
			s.Given.Data = test.Must(b.Device.Alloc(2 * s.Given.Layout.Bytes()))(t).All()
			given := randomsOf[T](2 * s.Given.Layout.Length)
			kerneltest.Put(b, s.Given.Data, given)
			for _, s.FactorAt = range []int64{0, s.Given.Layout.Length} {
				b.Do(b.Stream.Launch(test.Must(reflector.Affine(a, ghosts, in, s))(t)))
				kerneltest.EachPoint(ghosts, func(p domain.Vec) {
					at, factor := s.Given.Layout.Offset(p.Add(s.By)), T(s.Factor)
					if s.FactorAt > 0 {
						factor = given[at+s.FactorAt]
					}
					values[l.Offset(p)] = T(factor*values[l.Offset(p.Add(in))]) + T(T(s.Weight)*given[at])
				})
				holds(b, a.Data, values, "affine at side %v", side)
			}
		}
	}
}

// randomsOf returns random numbers of a type.
func randomsOf[T rows.Float](n int64) []T {
	v := make([]T, n)
	for i, x := range kerneltest.Noise(n) {
		v[i] = T(x)
	}
	return v
}
