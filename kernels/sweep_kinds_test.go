package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Sweeps of every kind of stencil give the bits of a plain loop, over boxes of any width
// that begin anywhere, and touch nothing else; with norms and without.
func TestSweepBitsOfEveryKind(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for dims, spacing := range map[int][]float64{2: {0.1, 0.1}, 3: {0.1, 0.1, 0.1}} {
			for _, kind := range stencil.Kinds(dims) {
				sum := must(stencil.HeatOf(kind, spacing, 1, 1e-3))(t)
				t.Run(fmt.Sprintf("dims=%d/%v", dims, kind), func(t *testing.T) {
					b := newBench(t, s)
					sweeper := must(b.compiler.NewSweeper(b.device, sum, kernels.Float64))(t)
					for _, c := range oddBoxes(sum) {
						kindBits(b, sweeper, sum, c.owned, c.boxes)
					}
				})
			}
		}
	})
}

// oddBox is an owned box, and boxes in it to sweep.
type oddBox struct {
	owned domain.Box
	boxes []domain.Box
}

func oddBoxes(s stencil.Stencil) (all []oddBox) {
	size := func(n domain.Vec) domain.Box {
		b := domain.Box{Lo: domain.Vec{5, -3, 2}}
		if s.Dims == 2 {
			n[1], n[2], b.Lo[2] = n[1]*n[2], 1, 0
		}
		b.Hi = b.Lo.Add(n)
		return b
	}
	narrow := size(domain.Vec{48, 3, 9})
	for width := 1; width <= 40; width++ {
		b := narrow
		b.Lo[0] += width % 9
		b.Hi[0] = b.Lo[0] + width
		all = append(all, oddBox{narrow, []domain.Box{b.Intersect(narrow)}})
	}
	for _, n := range []domain.Vec{{70, 19, 67}, {257, 3, 9}, {1, 33, 40}, {9, 30, 1}, {1, 1, 1}} {
		owned := size(n)
		inner, slabs := domain.Split(owned, s.Radius())
		all = append(all, oddBox{owned, []domain.Box{owned}}, oddBox{owned, slabs})
		if !inner.Empty() {
			all = append(all, oddBox{owned, []domain.Box{inner}})
		}
	}
	return all
}

func kindBits(b *bench, sweeper *kernels.Sweeper, s stencil.Stencil, owned domain.Box, boxes []domain.Box) {
	b.t.Helper()
	l := must(domain.NewLayout(owned, s.Radius(), 8))(b.t)
	src := kernels.Array{Data: must(b.device.Alloc(l.Bytes()))(b.t).All(), Layout: l}
	dst := kernels.Array{Data: must(b.device.Alloc(l.Bytes()))(b.t).All(), Layout: l}
	in, before := noise(l.Length), noise(l.Length)
	b.put(src.Data, in)
	want := append([]float64(nil), before...)
	for _, box := range boxes {
		eachPoint(box, func(p domain.Vec) { want[l.Offset(p)] = kernels.PlainSum(s, l, in, p) })
	}
	launches, total, err := sweeper.Measure(dst, src, kernels.BoxSet{Name: "measured", Boxes: boxes})
	if err != nil {
		b.t.Fatal(err)
	}
	plain := must(sweeper.Sweep(dst, src, boxes...))(b.t)
	for _, k := range []*streams.Kernel{plain, launches[0]} {
		b.put(dst.Data, before)
		b.do(b.stream.Launch(k))
		got := b.get(dst.Data)
		for i := range want {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
				b.t.Fatalf("%s of %v, boxes %v, element %d: got %v, want %v", k.Name(), owned, boxes, i, got[i], want[i])
			}
		}
	}
	b.do(plain.Close(), total.Close(), src.Data.Memory.Close(), dst.Data.Memory.Close())
}
