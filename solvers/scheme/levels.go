package scheme

import "fmt"

// newest returns the level from which a run of so many steps goes on: the newest of all variables of several levels
// that the step writes, or that another run has computed. It returns an error where they are not at the same one, and
// where a run would read levels that nobody computes. What is only read and was never computed is read in turn.
func (s *Step) newest(steps int64) (level int64, err error) {
	var first *Variable
	for _, v := range s.variables() {
		written := s.writes(v)
		switch {
		case v.Levels() == 1:
			if first == nil && written {
				level = max(level, v.newest)
			}
		case !written && !v.computed:
		case first == nil:
			first, level = v, v.newest
		case v.newest != level:
			return 0, fmt.Errorf("scheme: variable %q is at level %d, and %q at %d: step them together, or fill one of them at the level of the other and say so by SetNewest",
				first.Spec.Name, level, v.Spec.Name, v.newest)
		}
		if v.Levels() > 1 && !written && v.computed && steps > 1 {
			return 0, fmt.Errorf("scheme: %d steps that read variable %q, of %d levels, which another run has computed up to level %d, and do not write it: make one step at a time, or compute it in a stage of the same step",
				steps, v.Spec.Name, v.Levels(), v.newest)
		}
	}
	return level, nil
}

// advance says that steps up to a level were made.
func (s *Step) advance(level int64) {
	for _, v := range s.variables() {
		if s.writes(v) {
			v.newest, v.computed = level, true
		}
	}
}

// keepLevels returns what has all variables at the levels again at which they are now.
func (s *Step) keepLevels() (restore func()) {
	var undo []func()
	for _, v := range s.variables() {
		newest, computed := v.newest, v.computed
		undo = append(undo, func() { v.newest, v.computed = newest, computed })
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}
