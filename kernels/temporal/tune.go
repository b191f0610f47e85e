package temporal

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// learnt is what Tune has found out: the nanoseconds of a sweep, and those of the fastest kernel of each depth.
type learnt struct {
	Key    string            `json:"key"`
	Sweep  time.Duration     `json:"sweep_ns"`
	Depths map[int]learntOne `json:"depths"`
}

type learntOne struct {
	Shape  string        `json:"shape"`
	Weight int           `json:"weight"` // see shape
	Pass   time.Duration `json:"pass_ns"`
}

// weights are the values of shape.weight that are tried.
var weights = []int{14, 16, 18, 20, 22, 25, 28, 32, 36, 42, 48}

var errUnknown = errors.New("temporal: nobody has tuned this")

// Tune finds out on a GPU how long passes over the box take, beside the sweep, which is a launch that makes one step there, and which kernel
// is the fastest for each depth: Costs are what it found. It takes no longer than the budget and one pass more for the sweep, for all kernels, and for
// the weights of the fastest, and the time for compiling. It changes what passes store to, and norms. What it found is kept in the cache,
// for GPUs of this name, stencils of this shape and sizes that flags.Alike does not tell apart. Passes that would read more ghosts than from holds are not
// tried, and there are none of them any more. On host devices there is nothing to tune, and in a dry run nothing is measured.
func (p *Passes) Tune(sweep *streams.Kernel, from, to kernels.Array, box domain.Box, sides Sides, of More, budget time.Duration) error {
	if p.gpu == nil {
		return nil
	}
	p.gpu.limit(func(depth int) error { return from.Holds(p.read(box, sides, depth)) })
	err := p.gpu.tune(p.gpu.tuningKey(fmt.Sprintf("stencil %v, %s", p.stencil.Shape(), p.real), box), sweep, budget, func(s shape) (*streams.Kernel, error) {
		spec := p.spec("pass to tune", from, to, of)
		if err := p.gpu.prepare(&spec, s, from, to, box, sides, of); err != nil {
			return nil, err
		}
		return p.device.NewKernel(spec)
	})
	if err != nil {
		return err
	}
	p.cost = p.gpu.costs()
	return nil
}

// limit leaves the candidates, and so the passes, of those depths that are possible.
func (g *gpu) limit(possible func(depth int) error) {
	deeper := func(s shape) bool { return possible(s.depth) != nil }
	g.candidates, g.shapes = slices.DeleteFunc(g.candidates, deeper), slices.DeleteFunc(g.shapes, deeper)
}

// tune recalls what was found out under a key, or finds it out: pass makes a launch of a candidate.
func (g *gpu) tune(key string, sweep *streams.Kernel, budget time.Duration, pass func(shape) (*streams.Kernel, error)) error {
	if len(g.candidates) == 0 {
		return nil
	}
	valid := func(text []byte) bool {
		_, ok := g.learnt(text, key)
		return ok
	}
	text, _, err := g.compiler.Remember("passes", key, valid, func() ([]byte, error) {
		if g.device.IsDry() {
			for _, s := range g.candidates {
				g.compiler.Expect(g.device, s.program, s.name)
			}
			return nil, errUnknown
		}
		found, err := g.try(sweep, budget, pass)
		found.Key = key
		text, _ := json.MarshalIndent(found, "", "\t")
		return append(text, '\n'), err
	})
	if errors.Is(err, errUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	found, _ := g.learnt(text, key)
	g.take(found)
	return nil
}

// learnt returns what an entry of the cache holds, if it can have been measured with these kernels.
func (g *gpu) learnt(text []byte, key string) (l learnt, ok bool) {
	if err := json.Unmarshal(text, &l); err != nil || l.Key != key || l.Sweep <= 0 {
		return l, false
	}
	for depth, one := range l.Depths {
		s := g.find(depth, one.Shape)
		if one.Pass <= 0 || s == nil || (s.weight > 0) != (one.Weight > 0) || one.Weight > slices.Max(weights) {
			return l, false
		}
	}
	return l, true
}

// find returns the candidate of a depth that has a name.
func (g *gpu) find(depth int, name string) *shape {
	for i := range g.candidates {
		if s := &g.candidates[i]; s.depth == depth && s.String() == name {
			return s
		}
	}
	return nil
}

// take keeps the kernels that are worth it: a pass is faster than sweeps.
func (g *gpu) take(l learnt) {
	g.shapes, g.sweep = nil, l.Sweep
	for depth := 2; depth <= maxDepth; depth++ {
		one, ok := l.Depths[depth]
		if !ok || one.Pass >= time.Duration(depth)*l.Sweep {
			continue
		}
		s := *g.find(depth, one.Shape)
		s.weight = one.Weight
		s.cost = float64(one.Pass) / float64(l.Sweep)
		g.shapes = append(g.shapes, s)
	}
}

// tuningKey names all that decides which passes of something are the fastest. Weights and the values of parameters do not.
func (g *gpu) tuningKey(of string, box domain.Box) string {
	h := sha256.New()
	for _, s := range g.candidates {
		fmt.Fprintln(h, s.program)
	}
	return fmt.Sprintf("%s %s, %s, kernels %x, size %v", g.device.Name, g.device.Arch, of, h.Sum(nil)[:8], flags.Alike(box.Size()))
}

// try times the sweep, the candidates, and other weights of the fastest, each until the budget is spent. Of each depth the first candidate comes before the others.
func (g *gpu) try(sweep *streams.Kernel, budget time.Duration, pass func(shape) (*streams.Kernel, error)) (found learnt, err error) {
	g.compileAll()
	w, err := flags.NewTimer(g.device, 30*time.Second)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	found.Depths = map[int]learntOne{}
	if found.Sweep, err = w.Least(sweep, time.Now().Add(budget)); err != nil {
		return found, err
	}
	end := time.Now().Add(budget)
	for _, s := range g.candidates {
		if time.Now().After(end) {
			break
		}
		took, err := timeShape(w, s, pass, end)
		if errors.Is(err, ErrImpossible) {
			continue
		}
		if err != nil {
			return found, err
		}
		if best, ok := found.Depths[s.depth]; !ok || took < best.Pass {
			found.Depths[s.depth] = learntOne{s.String(), s.weight, took}
		}
	}
	end = time.Now().Add(budget)
	for depth := maxDepth; depth > 1; depth-- {
		if one, ok := found.Depths[depth]; ok {
			if found.Depths[depth], err = otherWeights(w, *g.find(depth, one.Shape), one, pass, end); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// compileAll compiles all candidates side by side. What fails tells so when it is loaded.
func (g *gpu) compileAll() {
	var all sync.WaitGroup
	for _, s := range g.candidates {
		all.Go(func() { _, _ = g.compiler.Image(s.program, g.device.Arch) })
	}
	all.Wait()
}

// otherWeights times a candidate with other weights than the one that was timed, see shape: greater ones as long as each is faster than the one before,
// or, if the first of these is not, smaller ones; and no more than there is time for.
func otherWeights(w *flags.Timer, s shape, best learntOne, pass func(shape) (*streams.Kernel, error), end time.Time) (learntOne, error) {
	if s.weight == 0 {
		return best, nil
	}
	for _, ladder := range ladders(s.weight) {
		for _, s.weight = range ladder {
			if time.Now().After(end) {
				return best, nil
			}
			took, err := timeShape(w, s, pass, end)
			if err != nil {
				return best, err
			}
			if took >= best.Pass-best.Pass/200 { // no more than they vary
				break
			}
			best.Weight, best.Pass = s.weight, took
		}
		if slices.Contains(ladder, best.Weight) {
			break
		}
	}
	return best, nil
}

// ladders are the weights above one, from the least on, and those below, from the greatest on.
func ladders(weight int) [2][]int {
	above := slices.Clone(weights[sort.SearchInts(weights, weight+1):])
	below := slices.Clone(weights[:sort.SearchInts(weights, weight)])
	slices.Reverse(below)
	return [2][]int{above, below}
}

// timeShape returns the time of a pass of a candidate.
func timeShape(w *flags.Timer, s shape, pass func(shape) (*streams.Kernel, error), end time.Time) (took time.Duration, err error) {
	k, err := pass(s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return w.Least(k, end)
}
