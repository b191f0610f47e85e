package scheme

import (
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

type blocked struct {
	*run
	parts      []*blockedPart
	tune       tuner
	neighbours bool // see hasNeighbours
}

// passMaker makes the passes of a subdomain: of a linear stencil or of another point function.
type passMaker interface {
	// costs are those of passes by their depth, see temporal.Cut.
	costs() []float64
	// tune finds out what passes over a box cost, beside a sweep of it.
	tune(sweep *streams.Kernel, arrays sweep.Arrays, box domain.Box) error
	// pass makes one ready.
	pass(name string, arrays sweep.Arrays, box domain.Box, depth int) (Launch, error)
}

// tuner finds out what passes over a box cost, beside a sweep of it.
type tuner func(p passMaker, sweep *streams.Kernel, arrays sweep.Arrays, box domain.Box) error

// blockedPart is what one worker drives.
type blockedPart struct {
	*subdomain
	stream *streams.Stream
	cost   []float64 // of passes, see temporal.Cut
	cuts   map[int][]int
	passes map[pass]Launch
	norms  normPasses
	tables *boundary.Tables // of walls that move; nil where none does
	walls  temporal.Walls
}

// pass is how many steps a pass makes, how many its group still has after it, and the field that it reads. It writes the other one:
// between the passes of a group a level may lie in the field where sweeps put the next one. 1 is a sweep.
type pass struct{ depth, left, slot int }

// deepest is the most steps after an exchange; 1 where nothing is exchanged, and no ghosts are swept.
func (b *blocked) deepest() int {
	if b.neighbours {
		return b.step.group()
	}
	return 1
}

// stage is the only one.
func (b *blocked) stage() *Stage { return &b.step.Stages[0] }

// linear returns the stencil of a stage that is one, of a variable of one component.
func (st *Stage) linear() (s stencil.Stencil, ok bool) {
	s, ok = st.Point.Linear()
	return s, ok && st.Writes[0].Variable.Spec.Components <= 1
}

// slot returns the fields that hold a level, of all variables that are stepped alike.
func (b *blocked) slot(level int64) int { return b.variable().slot(level) }

// arrays returns what a pass reads and writes that reads the fields of a slot.
func (b *blocked) arrays(rank, slot int) sweep.Arrays { return b.stage().arrays(rank, int64(slot)+1) }

// box returns the points of the last level of a pass.
func (b *blocked) box(p *blockedPart, key pass) domain.Box {
	return b.place.Grown(p.rank, farther(domain.Radius{}, b.step.reach(), key.left))
}

// passName is that of a launch, for traces.
func passName(depth int) string { return fmt.Sprintf("pass of %d", depth) }

// variable is the first of those that are stepped, the only one of a linear stencil.
func (b *blocked) variable() *Variable { return b.stage().Writes[0].Variable }

// normPasses are the passes of a subdomain that take the norms of their last step. Where there are none a step of which norms are taken is a sweep.
type normPasses struct {
	cost   []float64 // by depth, that of a sweep among them
	passes map[pass]normPass
	parts  [2]*reduce.NormParts // by the field that is written
	cuts   map[int][]int
	latest []*latest // by phase
}

// normPass is a pass, and what joins its norms.
type normPass struct {
	kernel *streams.Kernel
	total  normTotal
}

// latest is what is taken of the step of a phase that was made last, by a sweep or by a pass.
type latest struct{ of []total }

func (l *latest) Queue(s *streams.Stream) error {
	for _, t := range l.of {
		if err := t.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *latest) addTo(s *taken) {
	for _, t := range l.of {
		t.addTo(s)
	}
}

// possible returns the costs of passes that a group has room for.
func (b *blocked) possible(cost []float64) []float64 {
	if b.neighbours {
		return cost[:min(len(cost), b.step.group()+1)]
	}
	return cost
}

// eachPass calls do for all passes of finite costs that runs may need.
func (b *blocked) eachPass(cost []float64, do func(key pass) error) error {
	for depth := 2; depth < len(cost); depth++ {
		if math.IsInf(cost[depth], 1) {
			continue
		}
		for left := range max(1, b.deepest()-depth+1) {
			for now := range 2 {
				if err := do(pass{depth, left, now}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
