package sums

// Mode is how sums are taken.
type Mode string

// The modes. Reproducible sums are those of the package doc. Fast ones are taken in an order that depends on
// who sweeps what; they cost less. The empty mode is Reproducible.
const (
	Reproducible Mode = "reproducible"
	Fast         Mode = "fast"
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Reproducible, Fast} }

// Defines are the build options of kernels that include sums.cuh.
func (m Mode) Defines() []string {
	if m == Fast {
		return []string{"FAST_SUMS"}
	}
	return nil
}

// Add adds terms to a sum, all of which are of the mode.
func (m Mode) Add(s *Sum, terms []float64) {
	if m != Fast {
		s.add(terms)
		return
	}
	total := 0.0
	for _, x := range terms {
		total += x
	}
	s.Join(Plain(total))
}
