package temporal

import (
	"crypto/sha256"
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

// tuned is a result of Tune: the duration of a sweep, and those of the fastest kernel of each depth.
type tuned struct {
	Sweep  time.Duration      `json:"sweep_ns"`
	Depths map[int]tunedDepth `json:"depths"`
}

type tunedDepth struct {
	Shape  string        `json:"shape"`
	Weight int           `json:"weight"` // see shape
	Pass   time.Duration `json:"pass_ns"`
}

// weights are the tested values of shape.weight.
var weights = []int{14, 16, 18, 20, 22, 25, 28, 32, 36, 42, 48}

var errUnknown = errors.New("temporal: not tuned yet")

// launcher prepares a launch of a candidate.
type launcher func(s shape) (*streams.Kernel, error)

// Tune measures passes over the box and the sweep, a launch that runs one step there, and selects the fastest
// kernel for each depth. Costs returns the results.
//
// The budget limits each of three parts, to within one pass: the sweep, all kernels, and the weights of the
// fastest. Compile time is not included. Tune overwrites the destination of passes, and norms. The cache keeps the
// result for GPUs of this name, stencils of this shape, and sizes that are equal under flags.Alike. Passes that
// read more ghosts than from has are dropped. In a dry run nothing is measured.
func (p *Passes) Tune(
	sweep *streams.Kernel, from, to kernels.Array, box domain.Box, sides Sides, of More, budget time.Duration,
) error {
	deeper := func(s shape) bool { return from.Holds(p.read(box, sides, s.depth)) != nil }
	p.candidates, p.shapes = slices.DeleteFunc(p.candidates, deeper), slices.DeleteFunc(p.shapes, deeper)
	defer p.setCosts()
	if len(p.candidates) == 0 {
		return nil
	}
	key := p.tuningKey(box)
	found, _, err := kernels.Remember(p.compiler, "passes", key, p.isTuned, func() (tuned, error) {
		if p.device.IsDry() {
			for _, s := range p.candidates {
				p.compiler.Expect(p.device, s.program, s.name)
			}
			return tuned{}, errUnknown
		}
		return p.measure(sweep, budget, func(s shape) (*streams.Kernel, error) {
			spec, err := p.spec("pass to tune", s, from, to, box, sides, of)
			if err != nil {
				return nil, err
			}
			return p.device.NewKernel(spec)
		})
	})
	if errors.Is(err, errUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	p.take(found)
	return nil
}

// isTuned reports whether t may be a measurement of these kernels.
func (p *Passes) isTuned(t tuned) bool {
	if t.Sweep <= 0 {
		return false
	}
	for depth, one := range t.Depths {
		s := p.find(depth, one.Shape)
		if one.Pass <= 0 || s == nil || (s.weight > 0) != (one.Weight > 0) || one.Weight > slices.Max(weights) {
			return false
		}
	}
	return true
}

// find returns the candidate of a depth with a name.
func (p *Passes) find(depth int, name string) *shape {
	for i := range p.candidates {
		if s := &p.candidates[i]; s.depth == depth && s.String() == name {
			return s
		}
	}
	return nil
}

// take keeps the kernels whose passes are faster than sweeps.
func (p *Passes) take(t tuned) {
	p.shapes, p.sweep = nil, t.Sweep
	for depth := 2; depth <= maxDepth; depth++ {
		one, ok := t.Depths[depth]
		if !ok || one.Pass >= time.Duration(depth)*t.Sweep {
			continue
		}
		s := *p.find(depth, one.Shape)
		s.weight = one.Weight
		s.cost = float64(one.Pass) / float64(t.Sweep)
		p.shapes = append(p.shapes, s)
	}
}

// tuningKey identifies everything that determines the fastest passes, which excludes weights.
func (p *Passes) tuningKey(box domain.Box) string {
	h := sha256.New()
	for _, s := range p.candidates {
		fmt.Fprintln(h, s.program)
	}
	return fmt.Sprintf(
		"%s %s, stencil %v, %s, kernels %x, size %v", p.device.Name, p.device.Arch, p.stencil.Shape(), p.real,
		h.Sum(nil)[:8], flags.Alike(box.Size()),
	)
}

// measure times the sweep, the candidates, and other weights of the fastest, each until the budget is spent. The
// first candidate of each depth is timed first.
func (p *Passes) measure(sweep *streams.Kernel, budget time.Duration, pass launcher) (found tuned, err error) {
	p.compileAll()
	w, err := flags.NewTimer(p.device, 30*time.Second)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	found.Depths = map[int]tunedDepth{}
	if found.Sweep, err = w.Least(sweep, time.Now().Add(budget)); err != nil {
		return found, err
	}
	end := time.Now().Add(budget)
	for _, s := range p.candidates {
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
			found.Depths[s.depth] = tunedDepth{s.String(), s.weight, took}
		}
	}
	end = time.Now().Add(budget)
	for depth := maxDepth; depth > 1; depth-- {
		if one, ok := found.Depths[depth]; ok {
			if found.Depths[depth], err = otherWeights(w, *p.find(depth, one.Shape), one, pass, end); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// compileAll compiles all candidates concurrently. Errors are reported when a candidate is loaded.
func (p *Passes) compileAll() {
	var all sync.WaitGroup
	for _, s := range p.candidates {
		all.Go(func() { _, _ = p.compiler.Image(s.program, p.device.Arch) })
	}
	all.Wait()
}

// otherWeights times a candidate with other weights than the timed one, see shape: larger ones as long as each is
// faster than the one before or, if the first of these is not, smaller ones; until end.
func otherWeights(w *flags.Timer, s shape, best tunedDepth, pass launcher, end time.Time) (tunedDepth, error) {
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
			if took >= best.Pass-best.Pass/200 { // not more than their variation
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

// ladders returns the weights above one, ascending, and those below, descending.
func ladders(weight int) [2][]int {
	above := slices.Clone(weights[sort.SearchInts(weights, weight+1):])
	below := slices.Clone(weights[:sort.SearchInts(weights, weight)])
	slices.Reverse(below)
	return [2][]int{above, below}
}

// timeShape returns the time of a pass of a candidate.
func timeShape(w *flags.Timer, s shape, pass launcher, end time.Time) (took time.Duration, err error) {
	k, err := pass(s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return w.Least(k, end)
}
