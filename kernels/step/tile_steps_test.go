package step_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// tileRow is devices that share a box along its slowest axis, periodically. Along x it is periodic too; in
// three dimensions a wall at the low side of y mirrors, and the ghosts at the high side stay as they are.
type tileRow[T rows.Float] struct {
	rig
	values [][]T // by rank: what both fields hold before the first step
}

func newTileRow[T rows.Float](t *testing.T, set *testdevices.Set, devices int, size domain.Vec) *tileRow[T] {
	t.Helper()
	r := &tileRow[T]{rig: rig{t: t, real: kernels.Float64, exchange: 1}}
	r.stencil = stencil.StarWeights{Dims: 3, Centre: 0.4, Axis: [3]float64{0.11, 0.09, 0.1}}.Stencil()
	if size[2] == 1 {
		r.stencil = stencil.StarWeights{Dims: 2, Equal: true, Centre: 0.2, Axis: [3]float64{0.2, 0.2}}.Stencil()
	}
	if _, narrow := any(T(0)).(float32); narrow {
		r.real = kernels.Float32
	}
	slow, width := r.stencil.Dims-1, r.stencil.Radius()
	boxes := make([]domain.Box, devices)
	for i := range boxes {
		boxes[i].Hi = size
		boxes[i].Lo[slow], boxes[i].Hi[slow] = size[slow]*i/devices, size[slow]*(i+1)/devices
	}
	for i, d := range set.Devices[:devices] {
		rank := step.TileRank{Device: d}
		l := kerneltest.Must(domain.NewLayout(boxes[i], width, r.real.Size()))(t)
		for f := range rank.Fields {
			m := kerneltest.Must(d.Alloc(l.Bytes()))(t)
			t.Cleanup(func() { m.Close() })
			rank.Fields[f] = kernels.Array{Data: m.All(), Layout: l}
		}
		store := func(to int, send, ghost domain.Direction) {
			rank.Stores = append(rank.Stores, kernels.GhostStore{
				Send: domain.SendBox(boxes[i], send, width), Ghost: domain.GhostBox(boxes[to], ghost, width), To: to,
			})
		}
		for _, sign := range []int{-1, 1} {
			along := domain.Direction{sign}
			store(i, along, along.Opposite())
			along = domain.Direction{}
			along[slow] = sign
			store((i+sign+devices)%devices, along, along.Opposite())
		}
		if r.stencil.Dims == 3 {
			store(i, domain.Direction{0, -1, 0}, domain.Direction{0, -1, 0})
		}
		r.add(set, i, devices, rank)
		random, values := rand.New(rand.NewPCG(uint64(i), 7)), make([]T, l.Length)
		for n := range values {
			values[n] = T(random.Float64())
		}
		r.values = append(r.values, values)
	}
	return r
}

// tilesMade is what steps leave: the fields of all ranks, and the norms of the last step.
type tilesMade[T rows.Float] struct {
	fields [][2][]T
	norms  []reduce.Norms
}

// plain makes steps by plain loops.
func (r *tileRow[T]) plain(first, steps int64) (made tilesMade[T]) {
	for _, v := range r.values {
		made.fields = append(made.fields, [2][]T{slices.Clone(v), slices.Clone(v)})
	}
	made.norms = make([]reduce.Norms, len(r.ranks))
	for step := first; step < first+steps; step++ {
		for i, rank := range r.ranks {
			l, from, to := rank.Fields[0].Layout, made.fields[i][(step-1)%2], made.fields[i][step%2]
			eachPointBeside(l.Owned, func(p domain.Vec) {
				to[l.Offset(p)] = kerneltest.Apply(r.stencil, func(o domain.Vec) T { return from[l.Offset(p.Add(o))] })
			})
			if step == first+steps-1 {
				kerneltest.EachPoint(l.Owned, func(p domain.Vec) {
					o := l.Offset(p)
					rows.AddRow(&made.norms[i], to[o:o+1], from[o:o+1], sums.Reproducible)
				})
			}
		}
		for i, rank := range r.ranks {
			for _, s := range rank.Stores {
				from, to := rank.Fields[0].Layout, r.ranks[s.To].Fields[0].Layout
				kerneltest.EachPoint(s.Send, func(p domain.Vec) {
					made.fields[s.To][step%2][to.Offset(p.Add(s.Ghost.Lo.Sub(s.Send.Lo)))] = made.fields[i][step%2][from.Offset(p)]
				})
			}
		}
	}
	return made
}

// eachPointBeside calls f for the points of a box, by as many goroutines as there are cores.
func eachPointBeside(box domain.Box, f func(p domain.Vec)) {
	axis, parts := 1, runtime.GOMAXPROCS(0)
	if box.Size()[2] > box.Size()[1] {
		axis = 2
	}
	var all sync.WaitGroup
	for i := range parts {
		part := box
		n := box.Size()[axis]
		part.Lo[axis], part.Hi[axis] = box.Lo[axis]+n*i/parts, box.Lo[axis]+n*(i+1)/parts
		if !part.Empty() {
			all.Go(func() { kerneltest.EachPoint(part, f) })
		}
	}
	all.Wait()
}

// run makes steps by launches of so many each, the second and the last with norms.
func (r *tileRow[T]) run(first int64, launches []int64, parts bool) (made tilesMade[T]) {
	r.t.Helper()
	for i, rank := range r.ranks {
		for _, f := range rank.Fields {
			kerneltest.Put(r.all[i], f.Data, r.values[i])
		}
	}
	group := r.group(kerneltest.Limit)
	steps, norms := r.steps(group)
	for i := range r.ranks {
		if group.InRegisters(i) != parts {
			r.t.Fatalf("registers hold a part: %v", !parts)
		}
	}
	next := first
	for n, count := range launches {
		for i, s := range steps {
			kerneltest.Check(r.t, s.Queue(r.all[i].Stream, next, count, n == 1 || n == len(launches)-1))
		}
		next += count
	}
	for i, b := range r.all { // a rank's last ghosts come from its neighbours
		b.Do(b.Stream.Sync(kerneltest.Limit), steps[i].Err())
	}
	for i, b := range r.all {
		var fields [2][]T
		for f, a := range r.ranks[i].Fields {
			fields[f] = kerneltest.Get[T](b, a.Data)
		}
		made.fields = append(made.fields, fields)
		var sum reduce.Norms
		for _, tile := range kerneltest.Get[reduce.Norms](b, norms[i][(next-1)%2]) {
			sum.Add(tile)
		}
		made.norms = append(made.norms, sum)
	}
	kerneltest.Check(r.t, group.Close())
	return made
}

// compare compares all of the field that the last step wrote, what the ranks own of the other, and norms.
func (r *tileRow[T]) compare(what string, last int64, got, want tilesMade[T]) {
	r.t.Helper()
	for i, rank := range r.ranks {
		if w, g := want.fields[i][last%2], got.fields[i][last%2]; !slices.Equal(w, g) {
			at := 0
			for at = range w {
				if w[at] != g[at] {
					break
				}
			}
			r.t.Fatalf("%s: field %d of rank %d has %v in element %d, not %v", what, last%2, i, g[at], at, w[at])
		}
		l := rank.Fields[0].Layout
		w, g := want.fields[i][(last-1)%2], got.fields[i][(last-1)%2]
		kerneltest.EachPoint(l.Owned, func(p domain.Vec) {
			if o := l.Offset(p); w[o] != g[o] {
				r.t.Fatalf("%s: one step before, rank %d has %v at %v, not %v", what, i, g[o], p, w[o])
			}
		})
		a, b := got.norms[i], want.norms[i]
		if a.MaxChange != b.MaxChange || a.Max != b.Max || a.SumChange2.Value() != b.SumChange2.Value() || a.Sum2.Value() != b.Sum2.Value() {
			r.t.Fatalf("%s: norms of rank %d are %+v, not %+v", what, i, a, b)
		}
	}
}

// eachGPU runs f on all GPUs, and on n that are made of the CPU.
func eachGPU(t *testing.T, n int, f func(t *testing.T, set *testdevices.Set)) {
	t.Run("backend=cuda", func(t *testing.T) { f(t, testdevices.GPUs(t)) })
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { f(t, testdevices.CPU(t, n)) })
}

// tileCase is a box, so many devices, and a type; parts says that registers hold a part of the tiles.
type tileCase struct {
	size    domain.Vec
	devices int
	real    kernels.Real
	parts   bool
}

// run makes eight steps in launches of any number, from an odd step on, from an even one, and across
// the step 2^32, and compares them with plain loops.
func (c tileCase) run(t *testing.T, set *testdevices.Set) {
	t.Run(fmt.Sprintf("size=%v/devices=%d/type=%s", c.size, c.devices, c.real), func(t *testing.T) {
		if c.real == kernels.Float32 {
			runTiles[float32](t, set, c)
		} else {
			runTiles[float64](t, set, c)
		}
	})
}

func runTiles[T rows.Float](t *testing.T, set *testdevices.Set, c tileCase) {
	r := newTileRow[T](t, set, c.devices, c.size)
	type series struct {
		first    int64
		launches []int64
	}
	for _, one := range testdevices.Some(3, []series{{1, []int64{1, 2, 1, 1, 3}}, {1, []int64{5, 2, 1}}, {6, []int64{3, 5}}, {1<<32 - 4, []int64{3, 5}}, {1<<32 - 3, []int64{2, 6}}}) {
		steps := int64(0)
		for _, n := range one.launches {
			steps += n
		}
		what := fmt.Sprintf("launches of %d from step %d on", one.launches, one.first)
		r.compare(what, one.first+steps-1, r.run(one.first, one.launches, c.parts), r.plain(one.first, steps))
	}
}

// Tiles give the bits of plain loops, in boxes that take one tile or many, none of equal sizes, on one
// device and several, in launches of any number of steps.
func TestTiles(t *testing.T) {
	eachGPU(t, 3, func(t *testing.T, set *testdevices.Set) {
		onCPU := testdevices.OnCPU(set.Devices[0])
		for i, size := range []domain.Vec{{5, 7, 1}, {301, 97, 1}, {1030, 203, 1}, {6, 5, 7}, {33, 20, 2}, {33, 47, 29}, {70, 101, 64}, {100, 90, 131}, {40, 3000, 1}, {7, 1, 5}, {1, 6, 5}, {9, 8, 1}} {
			slow := size[2]
			if slow == 1 {
				slow = size[1]
			}
			for devices := 1; devices <= min(slow, len(set.Devices)); devices++ {
				for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
					if onCPU && (size.Product() > 1<<16 || devices == 2 || (devices > 1) != (real == kernels.Float64)) {
						continue // a few cases, which compile tiles of all kinds
					}
					if onCPU && !testdevices.Turn(i+2*(devices/2), 4, 4) {
						continue // each size on one device, on three or on none
					}
					tileCase{size, devices, real, false}.run(t, set)
				}
			}
		}
	})
}

// So they do where registers hold a part of the tiles, see TestTilings.
func TestTilesInRegisters(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		if testdevices.OnCPU(set.Devices[0]) { // which have less shared memory
			for _, c := range testdevices.Some(1, []tileCase{{domain.Vec{65, 67, 26}, 2, kernels.Float64, true}, {domain.Vec{515, 301, 1}, 2, kernels.Float32, true}}) {
				c.run(t, set)
			}
			return
		}
		for devices := 1; devices <= min(2, len(set.Devices)); devices++ {
			for _, size := range []domain.Vec{{127, 253, 123 * devices}, {1030, 4099 * devices, 1}} {
				tileCase{size, devices, kernels.Float64, true}.run(t, set)
			}
			for _, size := range []domain.Vec{{253, 255, 121 * devices}, {2050, 4101 * devices, 1}} {
				tileCase{size, devices, kernels.Float32, true}.run(t, set)
			}
		}
	})
}
