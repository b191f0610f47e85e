package main

import (
	"math"
	"testing"

	"github.com/halox/halox/examples/internal/sessions"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

// runOn runs 100 steps on a plane whose size no number of devices divides.
func runOn(t *testing.T, session *halo.Session, r rates) []float64 {
	t.Helper()
	values, err := run(t.Context(), session, 51, 100, r)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// total returns how much u and v there is.
func total(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// Where nothing is fed and nothing removed, u and v together are conserved, while
// the one becomes the other.
func TestConservation(t *testing.T) {
	closed := coral
	closed.Feed, closed.Kill = 0, 0
	sessions.Each(t, func(t *testing.T, session *halo.Session) []float64 {
		values := runOn(t, session, closed)
		const square = 12 * 12 // points from 51*3/8 up to 51*5/8
		want := 51*51 - square + 0.75*square
		if off := math.Abs(total(values)/want - 1); off > 1e-13 {
			t.Errorf("a part of %.1e of u and v appeared or was lost", off)
		}
		if v := total(values[len(values)/2:]); v < 1.5*0.25*square {
			t.Errorf("nothing happened: v is %v", v)
		}
		return values
	})
}

// A pattern that started symmetric stays so across corners and cuts, and has the
// same bits on any number of devices.
func TestSymmetry(t *testing.T) {
	sessions.Each(t, func(t *testing.T, session *halo.Session) []float64 {
		values := runOn(t, session, coral)
		const n, lo, hi = 51, 51 * 3 / 8, 51 * 5 / 8
		for y := lo; y < hi; y++ {
			for x := lo; x < hi; x++ {
				v, mirrored := values[n*n+y*n+x], values[n*n+y*n+(lo+hi-1-x)]
				if math.Abs(v-mirrored) > 1e-12 {
					t.Fatalf("v is %v at %d, %d and %v at its mirror image", v, x, y, mirrored)
				}
			}
		}
		return values
	})
}

func TestKernelCompiles(t *testing.T) { testdevices.Compile(t, source) }
