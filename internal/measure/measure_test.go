package measure

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNewSample(t *testing.T) {
	for _, tc := range []struct {
		name string
		all  []float64
		want Sample
	}{
		{"none", nil, Sample{}},
		{"one", []float64{7}, Sample{N: 1, Median: 7, Q1: 7, Q3: 7, Min: 7, Max: 7}},
		{"two", []float64{4, 2}, Sample{N: 2, Median: 3, Q1: 2.5, Q3: 3.5, Min: 2, Max: 4}},
		{"five have no interval", []float64{5, 1, 3, 2, 4}, Sample{N: 5, Median: 3, Q1: 2, Q3: 4, Min: 1, Max: 5}},
		{"six have the widest", []float64{6, 1, 5, 2, 4, 3}, Sample{N: 6, Median: 3.5, Q1: 2.25, Q3: 4.75, Min: 1, Max: 6, Lo: 1, Hi: 6}},
		{"nine", []float64{9, 1, 8, 2, 7, 3, 6, 4, 5}, Sample{N: 9, Median: 5, Q1: 3, Q3: 7, Min: 1, Max: 9, Lo: 2, Hi: 8}},
	} {
		if got := NewSample(tc.all); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// The ranks of the usual tables of the sign test at 5%, each one more.
func TestRank(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 10: 2, 12: 3, 20: 6, 25: 8, 50: 18, 100: 40, 1000: 469} {
		if got := rank(n); got != want {
			t.Errorf("of %d: %d, want %d", n, got, want)
		}
	}
}

// A sample has an interval where there is a rank, and says so at once of as many measurements as a file claims.
func TestWhichHaveAnInterval(t *testing.T) {
	for n := range 200 {
		if _, _, ok := (Sample{N: n}).Interval(); ok != (rank(n) > 0) {
			t.Errorf("of %d: %v", n, ok)
		}
	}
	if _, _, ok := (Sample{N: math.MaxInt}).Interval(); !ok {
		t.Error("of the largest number there is none")
	}
}

// The interval holds the true median as often as it says, of a skewed distribution.
func TestIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const trials = 4000
	for _, n := range []int{6, 9, 25, 80} {
		held := 0
		for range trials {
			all := make([]float64, n)
			for i := range all {
				all[i] = r.ExpFloat64()
			}
			if lo, hi, ok := NewSample(all).Interval(); ok && lo <= math.Ln2 && math.Ln2 <= hi {
				held++
			}
		}
		if share := float64(held) / trials; share < 0.94 {
			t.Errorf("of %d: holds it in %.3f of cases", n, share)
		}
	}
}

// What a sample says is in order, and of the numbers' range.
func TestSampleInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e6), 1, 60).Draw(t, "all")
		s := NewSample(all)
		for _, s := range []Sample{s, s.Scale(0.5), s.Under(10), s.Over(s.Scale(2)), s.Under(3).Over(s)} {
			if !(s.Min <= s.Q1 && s.Q1 <= s.Median && s.Median <= s.Q3 && s.Q3 <= s.Max) || s.N != len(all) {
				t.Fatalf("%+v", s)
			}
			lo, hi, ok := s.Interval()
			if ok != (s.N >= 6) || ok && !(s.Min <= lo && lo <= s.Median && s.Median <= hi && hi <= s.Max) {
				t.Fatalf("interval %v, %v, %t of %+v", lo, hi, ok, s)
			}
		}
	})
}

// A ratio is as uncertain as both of its quantities, and at most as their extremes allow.
func TestRatioHasBothSpreads(t *testing.T) {
	steady, wild := NewSample([]float64{100, 100, 101, 99, 100, 100}), NewSample([]float64{50, 300, 400, 100, 200, 150})
	for _, tc := range []struct{ of, to Sample }{{steady, wild}, {wild, steady}, {wild, wild.Scale(2)}} {
		lo, hi, ok := tc.of.Over(tc.to).Interval()
		ratio := tc.of.Median / tc.to.Median
		if !ok || lo > ratio*math.Sqrt(1/3.) || hi < ratio*2 || lo < tc.of.Min/tc.to.Max || hi > tc.of.Max/tc.to.Min {
			t.Errorf("%v over %v is between %v and %v, %t", tc.of, tc.to, lo, hi, ok)
		}
	}
	if wild.Over(wild) != Exact(1) || steady.Over(Exact(3)).N != 1 || steady.Over(Sample{}).N != 0 {
		t.Error("over itself, and over fewer measurements")
	}
}

func TestConverged(t *testing.T) {
	steady := NewSample([]float64{100, 100, 100.5, 99.5, 100, 100.2})
	if !steady.Converged(0.01) || steady.Converged(0.001) || NewSample([]float64{1, 1, 1, 1, 1}).Converged(1) {
		t.Error("six within a half of a percent")
	}
	if s := NewSample([]float64{-1, -1, -1, -1, -1, -1}); !s.Converged(0) {
		t.Error("six that are one")
	}
}

// counter gives the numbers of a list, and then the last of them again and again.
func counter(all ...float64) (func() (float64, error), *int) {
	n := 0
	return func() (float64, error) {
		n++
		return all[min(n, len(all))-1], nil
	}, &n
}

func TestRepeatEnds(t *testing.T) {
	for _, tc := range []struct {
		name    string
		budget  Budget
		all     []float64
		n, runs int
	}{
		{"steady, as soon as there is an interval", Budget{Warm: 2, Min: 3, Max: 100, Within: 0.01}, []float64{99, 98, 1}, 6, 8},
		{"no less than the least", Budget{Min: 20, Max: 100, Within: 0.01}, []float64{1}, 20, 20},
		{"no more than the most", Budget{Max: 4, Within: 0.01}, []float64{1}, 4, 4},
		{"all of it", Budget{Max: 10, Time: time.Hour}, []float64{1, 2}, 10, 10},
		{"no time at all", Budget{Time: 1}, []float64{1}, 1, 1},
		{"the least before the time", Budget{Min: 7, Time: 1}, []float64{1, 2, 3}, 7, 7},
	} {
		once, runs := counter(tc.all...)
		s, err := Repeat(t.Context(), tc.budget, once)
		if err != nil || s.N != tc.n || *runs != tc.runs {
			t.Errorf("%s: %d measurements, %d runs, %v; want %d and %d", tc.name, s.N, *runs, err, tc.n, tc.runs)
		}
	}
}

// What is scattered takes more measurements than what is steady.
func TestRepeatUntilItConverges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s, err := Repeat(t.Context(), Budget{Max: 100000, Within: 0.01}, func() (float64, error) { return 1 + r.Float64(), nil })
	if err != nil || s.N < 100 || s.N == 100000 || math.Abs(s.Median-1.5) > 0.05 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What ends it early leaves what there was.
func TestRepeatStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	s, err := Repeat(ctx, Budget{Max: 10}, func() (float64, error) {
		if n++; n == 3 {
			cancel()
		}
		return float64(n), nil
	})
	if !errors.Is(err, context.Canceled) || s.N != 3 || s.Median != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = Repeat(ctx, Budget{Warm: 1, Max: 10}, nil); !errors.Is(err, context.Canceled) || s.N != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	n = 0
	s, err = Repeat(t.Context(), Budget{Max: 10}, func() (float64, error) {
		if n++; n == 3 {
			return 0, io.EOF
		}
		return 5, nil
	})
	if !errors.Is(err, io.EOF) || s.N != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err = Repeat(t.Context(), Budget{Max: 1}, func() (float64, error) { return math.NaN(), nil }); err == nil || !strings.Contains(err.Error(), "NaN") {
		t.Error(err)
	}
	if _, err = Repeat(t.Context(), Budget{Within: 0.01}, nil); err == nil || !strings.Contains(err.Error(), "never ends") {
		t.Error(err)
	}
}
