package scheme

import (
	"slices"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// taken is the norms of a step on one subdomain, by measured variable, and the reductions of point functions
// in the order of Step.Reductions.
type taken struct {
	norms   []reduce.Norms
	reduced []sweep.Reduced
}

// newTaken allocates the norms and reductions of a number of subdomains.
func (s *Step) newTaken(subdomains int) (all []taken) {
	for range subdomains {
		all = append(all, taken{make([]reduce.Norms, len(s.Measured)), make([]sweep.Reduced, len(s.Reductions()))})
	}
	return all
}

// add adds the norms and reductions of other subdomains.
func (t taken) add(other taken) {
	for i := range t.norms {
		t.norms[i].Add(other.norms[i])
	}
	for i := range t.reduced {
		t.reduced[i].Join(other.reduced[i])
	}
}

// clone returns a copy to which others can be added.
func (t taken) clone() taken { return taken{slices.Clone(t.norms), slices.Clone(t.reduced)} }

// measures reports whether norms or reductions are taken.
func (s *Step) measures() bool { return len(s.Measured)+len(s.Reductions()) > 0 }

// total is a part of the norms and reductions of a step.
type total interface {
	// Queue queues joining them and copying them to the host.
	Queue(s *streams.Stream) error
	// addTo adds them to the result, after the queued work.
	addTo(s *taken)
}

// fieldTotal is the norms of one variable, from the fields of its components.
type fieldTotal struct {
	components []*reduce.NormReduction
	variable   int // index among the measured variables
}

func (f fieldTotal) Queue(s *streams.Stream) error {
	for _, c := range f.components {
		if err := c.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

func (f fieldTotal) addTo(s *taken) {
	s.norms[f.variable] = f.components[0].Result()
	for _, c := range f.components[1:] {
		s.norms[f.variable].Add(c.Result())
	}
}

// pointTotal is the norms and reductions of a stage with a point function, over all swept parts.
type pointTotal struct {
	parts     []*sweep.Totals
	variables map[int]string // by measured variable: name of the access that writes it
	reduced   map[int]string // by reduction: its name
}

func (p pointTotal) Queue(s *streams.Stream) error {
	for _, part := range p.parts {
		if err := part.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

func (p pointTotal) addTo(s *taken) {
	for v, access := range p.variables {
		s.norms[v], _ = p.parts[0].Norms(access)
		for _, part := range p.parts[1:] {
			more, _ := part.Norms(access)
			s.norms[v].Add(more)
		}
	}
	for i, name := range p.reduced {
		s.reduced[i], _ = p.parts[0].Reduced(name)
		for _, part := range p.parts[1:] {
			more, _ := part.Reduced(name)
			s.reduced[i].Join(more)
		}
	}
}

// Reductions returns the reductions of all stages, in the order in which results have them.
func (s *Step) Reductions() (all []sweep.Reduction) {
	for _, st := range s.Stages {
		if st.Point != nil {
			all = append(all, st.Point.Reductions...)
		}
	}
	return all
}

// keepsLevels reports whether the levels from which a step can be continued exist until the step after the
// next has begun.
func (s *Step) keepsLevels() bool {
	for _, v := range s.variables() {
		if s.writes(v) && !s.keeps(v) {
			return false
		}
	}
	return true
}

// keeps reports whether a step writes the variable into a field that neither the step nor the next one still
// needs. A stage that reads the level which the step has not written yet reads the oldest one.
func (s *Step) keeps(v *Variable) bool {
	oldest, written := 0, false
	for _, st := range s.Stages {
		for _, a := range st.Reads {
			if a.Variable != v {
				continue
			}
			if a.Level > 0 && !written {
				return false
			}
			oldest = min(oldest, a.Level)
		}
		for _, a := range st.Writes {
			written = written || a.Variable == v
		}
	}
	return v.Levels() >= 2-oldest
}

// clone returns a copy that is not overwritten by another check.
func (c Check) clone() Check {
	c.Norms, c.Reduced = slices.Clone(c.Norms), slices.Clone(c.Reduced)
	return c
}
