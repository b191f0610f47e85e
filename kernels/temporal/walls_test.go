package temporal

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Passes with walls that differ between levels are bitwise identical to sweeps that set them each time, for
// stencils on the axes, with and without norms.
func TestPassesBetweenMovingWalls(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		rng := rand.New(rand.NewPCG(11, 12))
		b := kerneltest.NewBench(t, set)
		cases := 3
		if testdevices.OnCPU(b.Device) && !testdevices.Long() {
			cases = 1 // each compiles a program
		}
		for i, s := range testdevices.Again(6, stencils(t)) {
			if s.Footprint().Axes() > 1 {
				continue // it reads ghosts behind two faces
			}
			if testdevices.Turn(i, 4, 2) {
				tryPasses[float32](t, b, s, domain.Float32, Options{Moving: true}, []int{2, 3, 4}, cases, rng)
			}
			if testdevices.Turn(i+1, 4, 2) {
				tryPasses[float64](t, b, s, domain.Float64, Options{Moving: true}, []int{2, 3, 4}, cases, rng)
			}
		}
	})
}

// move makes some of the sides move, at least one.
func (p *problem[T]) move(b *kerneltest.Bench, rng *rand.Rand) (walls Faces) {
	p.walls = map[wallPoint]T{}
	var r domain.Vec
	for a := range p.stencil.Dims {
		r[a] = p.stencil.AxisRadius(a)
	}
	for i := range 2 * p.stencil.Dims {
		if p.sides[i] != Odd && (p.sides[i] != Fixed || r[i/2] > 1) || rng.IntN(4) == 0 {
			continue
		}
		p.moving[i] = true
		w := &walls[i]
		w.Box = p.sides.region(p.box, p.box, p.depth-1, r)
		w.Box.Lo[i/2] = p.box.Lo[i/2] - 1
		if i%2 == 1 {
			w.Box.Lo[i/2] = p.box.Hi[i/2]
		}
		w.Box.Hi[i/2] = w.Box.Lo[i/2] + 1
		for a := range p.stencil.Dims { // the tables may contain more than is read
			if a != i/2 && p.sides.low(a) == Open {
				w.Box.Lo[a] -= rng.IntN(2)
			}
		}
		var values []T
		for level := 1; level < p.depth; level++ {
			kerneltest.EachPoint(w.Box, func(at domain.Vec) {
				v := T(rng.Float64() - 0.5)
				p.walls[wallPoint{level, at}], values = v, append(values, v)
			})
		}
		w.Values = kerneltest.Upload(b, values)
	}
	return walls
}

// Faces without the values that a pass reads are rejected.
func TestWallErrors(t *testing.T) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		rng := rand.New(rand.NewPCG(13, 14))
		s := test.Must(stencil.HeatOf(stencil.Kinds(2)[0], []float64{0.1, 0.1}, 1, 1e-3))(t)
		sides := Sides{Fixed, Mirror, Fixed, Fixed}
		p := newProblem[float64](t, s, sides, domain.Vec{8, 9, 1}, 3, rng)
		from, to := array(b, p.layout, p.from), array(b, p.layout, p.to)
		box := domain.Box{Lo: p.box.Lo, Hi: p.box.Hi}
		box.Lo[0], box.Hi[0] = p.box.Lo[0]-1, p.box.Lo[0]
		good := Face{box, kerneltest.Upload(b, make([]float64, 2*9))}
		short, narrow := good, good
		short.Values.Length -= 8
		narrow.Box.Hi[1]--
		for name, c := range map[string]struct {
			options Options
			side    int
			wall    Face
		}{
			"without the option": {Options{}, 0, good},
			"of a mirror":        {Options{Moving: true}, 1, good},
			"of too few levels":  {Options{Moving: true}, 0, short},
			"of too few points":  {Options{Moving: true}, 0, narrow},
			"of another side":    {Options{Moving: true}, 2, good},
			"valid":              {Options{Moving: true}, 0, good},
		} {
			passes := test.Must(New(b.Compiler, b.Device, s, domain.Float64, p.layout, c.options))(t)
			var walls Faces
			walls[c.side] = c.wall
			k, _, err := passes.Pass("pass", from, to, p.box, sides, 3, More{Faces: walls})
			if (err == nil) != (name == "valid") {
				t.Errorf("%s: got %v", name, err)
			}
			if err == nil {
				b.Do(k.Close())
			}
		}
	})
}

// pass_stars.cu is bitwise identical to sweeps in shapes that other tests cannot run on the CPU: those for GPUs,
// with level 0 requested two planes ahead, and of three steps. Boxes are smaller than a tile, have faces within
// one, and have many.
func TestPassesOfLongStars(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		rng := rand.New(rand.NewPCG(17, 18))
		shapes := []longStars{{2, 2, 3, 1, everywhere}, {2, 3, 2, 2, everywhere}, {3, 3, 4, 1, everywhere}, {2, 4, 8, 2, everywhere}, {2, 3, 8, 2, everywhere}}
		for i, c := range shapes { // both types in long tests, otherwise some by turns
			for k, spacing := range [][]float64{{0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
				s := test.Must(stencil.HeatOf(stencil.Kinds(3)[1], spacing, 1, 1e-3))(t)
				if testdevices.Turn(i+2*k, 8, 8) {
					tryLongStars[float32](t, b, s, longStarShape(s, domain.Float32, c), domain.Float32, rng)
				}
				if testdevices.Turn(i+2*k+4, 8, 8) {
					tryLongStars[float64](t, b, s, longStarShape(s, domain.Float64, c), domain.Float64, rng)
				}
			}
		}
	})
}

func tryLongStars[T rows.Float](t *testing.T, b *kerneltest.Bench, s stencil.Stencil, one shape, real domain.Element, rng *rand.Rand) {
	for i := range 4 {
		size := domain.Vec{1 + rng.IntN(70), 1 + rng.IntN(20), 1 + rng.IntN(30)}
		if i > 0 {
			size[i-1] += 40 * (1 + rng.IntN(3)) // several tiles along x or y, or many layers
		}
		sides := randomSides(s, size, rng)
		if i == 3 {
			sides = Sides{}
		}
		p := newProblem[T](t, s, sides, size, one.depth, rng)
		passes := test.Must(New(b.Compiler, b.Device, s, real, p.layout, Options{}))(t)
		t.Run(fmt.Sprintf("%v/%v", p, one), func(t *testing.T) {
			p.runWith(t, b, passes, More{}, one.kernel(t, passes, p.box, sides))
		})
	}
}

// Passes also store layers of the last level in the ghosts of neighbors, and nothing else there.
func TestPassesStoreGhosts(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		last := len(set.Devices) - 1
		there := kerneltest.NewBench(t, &testdevices.Set{Devices: set.Devices[last:], Compiler: set.Compiler})
		smallOnCPU(t, b)
		rng := rand.New(rand.NewPCG(9, 9))
		all := byKernel(t)
		for i, same := range [][]stencil.Stencil{all[0], all[1], all[4]} {
			s := same[rng.IntN(len(same))]
			if testdevices.Turn(i, 2, 2) {
				storeGhosts[float64](t, b, there, s, domain.Float64, rng)
			}
			if testdevices.Turn(i+1, 2, 2) {
				storeGhosts[float32](t, b, there, s, domain.Float32, rng)
			}
		}
	})
}

func storeGhosts[T rows.Float](t *testing.T, b, there *kerneltest.Bench, s stencil.Stencil, real domain.Element, rng *rand.Rand) {
	for _, depth := range depthsOf(b, s, real) {
		for one := range 3 {
			size := randomSize(s.Dims, testdevices.OnGPU(b.Device), rng)
			if size[0] = 4 + size[0]/4*4; s.Dims == 2 && one == 0 {
				size[0] = 1 + rng.IntN(9) // narrow
			}
			p := newProblem[T](t, s, randomSides(s, size, rng), size, depth, rng)
			passes := test.Must(New(b.Compiler, b.Device, s, real, p.layout, Options{}))(t)
			compileAll(b, passes)
			if !passes.StoresGhosts(depth, p.box, p.sides) {
				continue
			}
			t.Run(p.String(), func(t *testing.T) {
				var ghosts []GhostStore
				values := make([]T, len(p.to))
				for i := range values {
					values[i] = T(math.NaN())
				}
				for range 1 + rng.IntN(maxGhostStores) {
					ghosts = append(ghosts, randomGhosts(p.box, s.Dims, array(there, p.layout, values), rng))
				}
				p.run(t, b, func(from, to kernels.Array) *streams.Kernel {
					k, _, err := passes.Pass("pass", from, to, p.box, p.sides, depth, More{Ghosts: ghosts})
					test.Check(t, err)
					return k
				})
				for _, g := range ghosts {
					p.checkGhosts(t, g, kerneltest.Get[T](there, g.To.Data))
				}
			})
		}
	}
}

// randomGhosts returns random layers of a box, anywhere in that box of an array.
func randomGhosts(box domain.Box, dims int, to kernels.Array, rng *rand.Rand) GhostStore {
	g := GhostStore{Layers: box, To: to, Ghosts: box}
	a := dims - 1
	n := box.Size()[a]
	count := 1 + rng.IntN(min(n, 5))
	from := []int{0, n - count, rng.IntN(n - count + 1)}[rng.IntN(3)]
	at := rng.IntN(n - count + 1)
	g.Layers.Lo[a], g.Layers.Hi[a] = box.Lo[a]+from, box.Lo[a]+from+count
	g.Ghosts.Lo[a], g.Ghosts.Hi[a] = box.Lo[a]+at, box.Lo[a]+at+count
	return g
}

// checkGhosts compares the stored values in the array of a neighbor, which was empty before.
func (p *problem[T]) checkGhosts(t *testing.T, g GhostStore, values []T) {
	t.Helper()
	want, l := p.want(), g.To.Layout
	expected := map[int64]T{}
	kerneltest.EachPoint(g.Ghosts, func(at domain.Vec) { expected[l.Offset(at)] = want(at.Sub(g.Ghosts.Lo).Add(g.Layers.Lo)) })
	for i, got := range values {
		w, ok := expected[int64(i)]
		if ok && got != w || !ok && got == got {
			t.Fatalf("layers %v as ghosts %v: element %d: got %v, want %v (%v)", g.Layers, g.Ghosts, i, got, w, ok)
		}
	}
}

// Invalid ghost stores are rejected, before anything is compiled.
func TestGhostStoreErrors(t *testing.T) {
	set := testdevices.CPU(t, 1)
	b := kerneltest.NewBench(t, set)
	smallOnCPU(t, b)
	s := test.Must(stencil.HeatOf(stencil.Kinds(3)[0], []float64{0.1, 0.1, 0.1}, 1, 1e-3))(t)
	rng := rand.New(rand.NewPCG(1, 2))
	p := newProblem[float64](t, s, Sides{}, domain.Vec{12, 10, 9}, 2, rng)
	from, to, other := array(b, p.layout, p.from), array(b, p.layout, p.to), array(b, p.layout, p.to)
	good := randomGhosts(p.box, 3, other, rng)
	for name, change := range map[string]func(o *Options, ghosts *[]GhostStore){
		"three":            func(_ *Options, all *[]GhostStore) { *all = []GhostStore{good, good, good} },
		"with options":     func(o *Options, _ *[]GhostStore) { o.Moving = true },
		"no layers":        func(_ *Options, all *[]GhostStore) { (*all)[0].Layers = domain.Box{} },
		"a part of layers": func(_ *Options, all *[]GhostStore) { (*all)[0].Layers.Hi[0]--; (*all)[0].Ghosts.Hi[0]-- },
		"other sizes":      func(_ *Options, all *[]GhostStore) { (*all)[0].Ghosts.Hi[1]-- },
		"beyond the array": func(_ *Options, all *[]GhostStore) {
			(*all)[0].Ghosts.Lo[2] += 100
			(*all)[0].Ghosts.Hi[2] += 100
		},
		"other elements": func(_ *Options, all *[]GhostStore) { (*all)[0].To.Layout.ElementSize = 4 },
		"another pitch":  func(_ *Options, all *[]GhostStore) { (*all)[0].To.Layout.Pitch += 2 },
		"not aligned":    func(_ *Options, all *[]GhostStore) { (*all)[0].To.Data.Offset += 8; (*all)[0].To.Data.Length -= 8 },
	} {
		t.Run(name, func(t *testing.T) {
			o, ghosts := Options{}, []GhostStore{good}
			change(&o, &ghosts)
			passes := test.Must(New(b.Compiler, b.Device, s, domain.Float64, p.layout, o))(t)
			if _, _, err := passes.Pass("pass", from, to, p.box, p.sides, 2, More{Box: p.box, Ghosts: ghosts}); err == nil || errors.Is(err, ErrImpossible) {
				t.Error(fmt.Sprint(ghosts), err)
			}
		})
	}
}
