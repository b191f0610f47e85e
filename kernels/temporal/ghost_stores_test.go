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

// Passes store layers of the last level in the ghosts of neighbours too, and nothing else there.
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
				storeGhosts[float64](t, b, there, s, kernels.Float64, rng)
			}
			if testdevices.Turn(i+1, 2, 2) {
				storeGhosts[float32](t, b, there, s, kernels.Float32, rng)
			}
		}
	})
}

func storeGhosts[T rows.Float](t *testing.T, b, there *kerneltest.Bench, s stencil.Stencil, real kernels.Real, rng *rand.Rand) {
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

// randomGhosts are some layers of a box, which lie anywhere within that box of an array.
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

// checkGhosts compares what lies in the array of a neighbour, where nothing was before.
func (p *problem[T]) checkGhosts(t *testing.T, g GhostStore, values []T) {
	t.Helper()
	want, l := p.want(), g.To.Layout
	expected := map[int64]T{}
	kerneltest.EachPoint(g.Ghosts, func(at domain.Vec) { expected[l.Offset(at)] = want(at.Sub(g.Ghosts.Lo).Add(g.Layers.Lo)) })
	for i, got := range values {
		w, ok := expected[int64(i)]
		if ok && got != w || !ok && got == got {
			t.Fatalf("layers %v as ghosts %v: element %d is %v, want %v (%v)", g.Layers, g.Ghosts, i, got, w, ok)
		}
	}
}

// Stores that cannot be are refused, before anything is compiled.
func TestGhostStoresThatCannotBe(t *testing.T) {
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
		"beside norms":     func(o *Options, _ *[]GhostStore) { o.Moving = true },
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
			passes := test.Must(New(b.Compiler, b.Device, s, kernels.Float64, p.layout, o))(t)
			if _, _, err := passes.Pass("pass", from, to, p.box, p.sides, 2, More{Box: p.box, Ghosts: ghosts}); err == nil || errors.Is(err, ErrImpossible) {
				t.Error(fmt.Sprint(ghosts), err)
			}
		})
	}
}
