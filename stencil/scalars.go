package stencil

import (
	"slices"

	"github.com/halox/halox/domain"
)

// Scalars computes the Values of a Form in float64. It is not safe for concurrent use.
type Scalars struct {
	evaluators []*Evaluator // one per value
	named      map[string]float64
}

// NewScalars prepares the values of a form on a grid. All numbers that may change are initially 0.
func (f *Form) NewScalars(c Coordinates) *Scalars {
	s := &Scalars{named: map[string]float64{}}
	for _, name := range slices.Concat(ofSteps, f.Variables) {
		s.named[name] = 0
	}
	for _, e := range f.Values {
		v := e.NewEvaluator(c)
		v.named = s.named
		s.evaluators = append(s.evaluators, v)
	}
	return s
}

// Changes reports whether values of the form change from step to step.
func (f *Form) Changes() bool {
	return slices.ContainsFunc(f.Values, func(e *Expression) bool {
		return e.Uses("t") || slices.ContainsFunc(ofSteps, func(name string) bool {
			return e.Uses(name) && !slices.Contains(f.Variables, name)
		})
	})
}

// Set sets a number that may change: one of Form.Variables, or dt or step, unless a variable has the same name.
func (s *Scalars) Set(name string, value float64) { s.named[name] = value }

// Compute sets dst to the values at a time. It does not allocate.
func (s *Scalars) Compute(dst []float64, t float64) {
	for i, v := range s.evaluators {
		v.SetTime(t)
		v.Row(dst[i:i+1], 0, 0, 0)
	}
}

// Nodes returns the i-th value as nodes, each of which depends only on nodes before it, and the node of the result.
func (s *Scalars) Nodes(i int) (nodes []Node, result int) {
	v := s.evaluators[i]
	for _, st := range v.program.steps {
		n := Node{Read: -1, Number: st.value}
		_, named := s.named[st.leaf]
		switch {
		case st.op != nil:
			n.Op, n.Args = st.op.name, st.operands()
		case named || st.leaf == "t":
			n.Name = st.leaf
		case st.leaf != "":
			n.Number = v.leaf(st.leaf, 0, 0)
		}
		nodes = append(nodes, n)
	}
	return nodes, v.program.root
}

// stageBit is the first bit of the stage in the high word of the key of noise. Seeds have at most 53 bits.
const stageBit = 21

// Noise returns the random bits of noise(seed) in a stage, at a point and a step. The step is the last word of the
// counter, and the stage is in the high bits of the key. Indices may be outside the grid by up to one period.
func (f *Form) Noise(seed float64, step int64, at domain.Vec) [4]uint32 {
	c := [4]uint32{3: uint32(step)}
	for a, n := range f.Size {
		c[a] = uint32((at[a]%n + n) % n)
	}
	low, high := f.NoiseKey(seed)
	return philox(c, [2]uint32{low, high})
}

// NoiseKey returns the key of noise(seed).
func (f *Form) NoiseKey(seed float64) (low, high uint32) {
	return uint32(uint64(seed)), uint32(uint64(seed)>>32) | uint32(f.Stage)<<stageBit
}
