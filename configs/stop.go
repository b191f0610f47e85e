package configs

import "math"

// Stop says when a run ends.
type Stop struct {
	Iterations int     `json:"iterations" yaml:"iterations"`                   // steps at most, from 1
	Tolerance  float64 `json:"tolerance,omitempty" yaml:"tolerance,omitempty"` // change a step to end at; 0: none
	Norm       string  `json:"norm" yaml:"norm"`                               // of the change: "max" or "l2"
	CheckEvery int     `json:"check_every" yaml:"check_every"`                 // steps between two looks at the change
	Sums       string  `json:"sums" yaml:"sums"`                               // of squares: "reproducible" or "fast"
}

func (r *reader) stop() Stop {
	return Stop{
		Iterations: r.whole("stop.iterations", 1, math.MaxInt),
		Tolerance:  r.positive("stop.tolerance"),
		Norm:       r.word("stop.norm", "max", "l2"),
		CheckEvery: r.whole("stop.check_every", 1, math.MaxInt),
		Sums:       r.word("stop.sums", "reproducible", "fast"),
	}
}
