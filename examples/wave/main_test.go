package main

import (
	"testing"

	"github.com/halox/halox/examples/internal/sessions"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

// The standing wave keeps its shape and swings at the frequency of the scheme, to
// the last digits, with the same bits on any number of devices.
func TestStandingWave(t *testing.T) {
	const n, steps = 21, 50
	sessions.Each(t, func(t *testing.T, session *halo.Session) []float64 {
		values, err := run(t.Context(), session, n, steps)
		if err != nil {
			t.Fatal(err)
		}
		if off := worst(values, n, steps); off > 1e-13 {
			t.Errorf("%v off the standing wave", off)
		}
		return values
	})
}

// A field of zeros is no wave: worst sees what is wrong.
func TestWorst(t *testing.T) {
	if off := worst(make([]float64, 7*7*7), 7, 0); off != 1 {
		t.Errorf("zeros are %v off", off)
	}
}

func TestKernelCompiles(t *testing.T) { testdevices.Compile(t, source) }
