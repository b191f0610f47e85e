package results

import "math"

// Number makes v fit for a record: nil where v is NaN or infinite, which JSON
// cannot hold, and a pointer to v else. Zero is a number like any other.
func Number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
