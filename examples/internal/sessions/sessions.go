// Package sessions runs what an example computes on different numbers of devices,
// for the tests of the examples.
package sessions

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// Each calls run with 1, 2 and 4 host devices, and with as many GPUs where this
// machine has them, each in a subtest. On one backend run has to return the same
// bits for any number of devices.
func Each(t *testing.T, run func(t *testing.T, session *halo.Session) []float64) {
	t.Run("backend=host", func(t *testing.T) { each(t, streams.Host, 4, run) })
	t.Run("backend=cuda", func(t *testing.T) {
		session := open(t, streams.CUDA, 0)
		have := len(session.Devices)
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
		each(t, streams.CUDA, have, run)
	})
}

func each(t *testing.T, backend streams.Backend, have int, run func(t *testing.T, session *halo.Session) []float64) {
	var first []float64
	for _, n := range []int{1, 2, 4} {
		if n > have {
			break
		}
		t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) {
			session := open(t, backend, n)
			defer func() {
				if err := session.Close(); err != nil {
					t.Error(err)
				}
			}()
			values := run(t, session)
			if first == nil {
				first = values
			}
			compare(t, values, first)
		})
	}
}

func open(t *testing.T, backend streams.Backend, n int) *halo.Session {
	t.Helper()
	session, err := halo.Open(t.Context(), halo.Devices{Backend: backend, Count: n})
	if errors.Is(err, streams.ErrNoDriver) {
		t.Skip("SKIPPED: no GPU: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func compare(t *testing.T, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, %d on one device", len(got), len(want))
	}
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("value %d is %v, on one device %v", i, got[i], want[i])
		}
	}
}
