package plot

// A span is a range of numbers, ends included; it is empty where lo > hi.
type span struct{ lo, hi float64 }

func (s span) empty() bool { return s.lo > s.hi }

// fraction is where v lies from lo (0) to hi (1); the middle where both are one.
// Halves are used since hi - lo may overflow.
func (s span) fraction(v float64) float64 {
	if s.lo == s.hi {
		return 0.5
	}
	return (v/2 - s.lo/2) / (s.hi/2 - s.lo/2)
}

// wide reports whether numbers are better shown on a logarithmic axis.
func (s span) wide(times float64) bool { return s.lo > 0 && s.hi/s.lo >= times }
