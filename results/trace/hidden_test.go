package trace

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestIntervals(t *testing.T) {
	type list = []Interval
	for _, tc := range []struct {
		name         string
		a, b         list
		merged, both list // the union of a, and its intersection with the union of b
	}{
		{"nothing", nil, list{{1, 2}}, nil, nil},
		{"apart", list{{5, 6}, {1, 2}}, list{{3, 4}}, list{{1, 2}, {5, 6}}, nil},
		{"nested", list{{1, 9}, {2, 3}, {4, 5}}, list{{2, 4}}, list{{1, 9}}, list{{2, 4}}},
		{"touching", list{{1, 2}, {2, 3}}, list{{3, 4}}, list{{1, 3}}, nil},
		{"empty ones", list{{2, 2}, {3, 4}, {4, 4}}, list{{0, 9}}, list{{3, 4}}, list{{3, 4}}},
		{"overlapping", list{{1, 4}, {3, 6}}, list{{0, 2}, {5, 8}}, list{{1, 6}}, list{{1, 2}, {5, 6}}},
		{"many in one", list{{0, 10}}, list{{1, 2}, {3, 4}, {9, 12}}, list{{0, 10}}, list{{1, 2}, {3, 4}, {9, 10}}},
		{"twice the same", list{{1, 3}, {1, 3}}, list{{1, 3}}, list{{1, 3}}, list{{1, 3}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := merged(slices.Clone(tc.a)), merged(slices.Clone(tc.b))
			if !slices.Equal(a, tc.merged) {
				t.Errorf("merged: got %v, want %v", a, tc.merged)
			}
			for _, got := range []list{common(a, b), common(b, a)} {
				if !slices.Equal(got, tc.both) {
					t.Errorf("common: got %v, want %v", got, tc.both)
				}
			}
		})
	}
}

// What random streams hide is what one counts nanosecond by nanosecond.
func TestHiddenAgainstARaster(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		d, both, all := randomDevice(rng)
		if hidden, communication := d.hidden(); int(hidden) != both || int(communication) != all {
			t.Fatalf("got %d of %d, want %d of %d: %+v", hidden, communication, both, all, d)
		}
	}
}

// randomDevice returns a device with up to four streams, for how many nanoseconds it
// communicates, and for how many of these it sweeps too.
func randomDevice(rng *rand.Rand) (d Device, both, all int) {
	const length = 200
	var sent, swept [length]bool
	for range rng.IntN(5) {
		var s Stream
		for at := rng.IntN(20); at < length; at += rng.IntN(20) {
			o := Operation{Category: Categories()[rng.IntN(len(Categories()))], Begin: time.Duration(at)}
			at = min(at+rng.IntN(30), length)
			o.End = time.Duration(at)
			s.Operations = append(s.Operations, o)
			for i := o.Begin; i < o.End; i++ {
				sent[i] = sent[i] || slices.Contains([]string{"pack", "unpack", "copy", "exchange"}, o.Category)
				swept[i] = swept[i] || o.Category == "sweep"
			}
		}
		d.Streams = append(d.Streams, s)
	}
	for i := range length {
		if sent[i] {
			all++
			if swept[i] {
				both++
			}
		}
	}
	return d, both, all
}
