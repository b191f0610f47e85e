package packing

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype/workloads"
)

// randomFeatures returns those of a task of some sizes, from a few to a million.
func randomFeatures(r *rand.Rand) features {
	x := features{1}
	for i := 1; i < numFeatures; i++ {
		x[i] = math.Floor(math.Exp(r.Float64() * math.Log(1e6)))
	}
	return x
}

// samplesOf returns what tasks take by prices, each off by a factor of up to 1 + noise.
func samplesOf(r *rand.Rand, n int, prices features, noise float64) (all []sample) {
	for range n {
		x := randomFeatures(r)
		all = append(all, sample{x, prices.dot(x) * math.Exp((2*r.Float64()-1)*math.Log1p(noise))})
	}
	return all
}

func TestFitFindsThePrices(t *testing.T) {
	for name, want := range map[string]features{
		"all":    {3000, 0.1, 5, 9, 1, 300},
		"a few":  {3000, 0, 0, 9, 0, 0},
		"launch": {3000},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for i, got := range newFit(samplesOf(r, 100, want, 0)).prices {
				if math.Abs(got-want[i]) > 1e-4*want[i]+1e-6 {
					t.Errorf("price %d is %g, not %g", i, got, want[i])
				}
			}
			const noise = 0.2
			f := newFit(samplesOf(r, 200, want, noise))
			if f.spread < 1.1 || f.spread > 1.3 {
				t.Errorf("the spread of times that are up to 20%% off is %g", f.spread)
			}
			for _, s := range samplesOf(r, 200, want, 0) {
				if off := f.prices.dot(s.features) / s.time; off < 0.85 || off > 1.15 {
					t.Errorf("%v takes %g, and the fit says %g times that", s.features, s.time, off)
				}
			}
		})
	}
}

// The prices are the best that are not negative: where one is positive the error does not
// change with it, and where it is 0 the error would grow with it. The times are of no
// sense: many would be met best by negative prices.
func TestPricesAreTheBestThatAreNotNegative(t *testing.T) {
	zeros, positive := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var all []sample
		for range enough + r.IntN(40) {
			x := randomFeatures(r)
			all = append(all, sample{x, max(1, 1e4-0.1*x[perByte]+20*x[perCall]) * math.Exp(r.NormFloat64())})
		}
		prices := fitPrices(all)
		var slope, scale features // of the error, by each price
		for _, s := range all {
			for i, n := range s.features {
				slope[i] += (prices.dot(s.features)/s.time - 1) * n / s.time
				scale[i] += n / s.time
			}
		}
		for i, price := range prices {
			switch relative := slope[i] / scale[i]; {
			case price < 0:
				t.Errorf("seed %d: price %d is %g", seed, i, price)
			case price == 0:
				zeros++
				if relative < -1e-6 {
					t.Errorf("seed %d: price %d is 0, and the slope %g", seed, i, relative)
				}
			default:
				positive++
				if math.Abs(relative) > 1e-6 {
					t.Errorf("seed %d: price %d is %g, and the slope %g", seed, i, price, relative)
				}
			}
		}
	}
	if zeros < 100 || positive < 100 {
		t.Errorf("%d prices are 0 and %d are not: the test shows little", zeros, positive)
	}
}

// More of anything never takes less, whatever the times were.
func TestPredictionsGrow(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	all := samplesOf(r, 60, features{1000, 1, 1, 1, 1, 1}, 20)
	f := newFit(all)
	for range 1000 {
		x := randomFeatures(r)
		before := f.predict(x)
		x[1+r.IntN(numFeatures-1)] *= 1.5
		if after := f.predict(x); before < 1 || after < before {
			t.Errorf("%v takes %v, with less of one %v", x, after, before)
		}
	}
}

// What always is the same for all samples, or twice another, does not upset the fit.
func TestFitOfFeaturesThatSayTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	all := samplesOf(r, 40, features{}, 0)
	for i := range all {
		s := &all[i]
		s.features[perCall], s.features[perWord] = 1, 2*s.features[perByte]
		s.features[perBlock] = 0
		s.time = 5000 + 3*s.features[perByte]
	}
	f := newFit(all)
	for _, s := range all {
		if got := f.prices.dot(s.features); math.Abs(got/s.time-1) > 1e-5 {
			t.Errorf("%v: %g, not %g", s.features, got, s.time)
		}
	}
}

// A model says nothing of what it has seen too little of, or nothing like it.
func TestModelKnowsWhatItHasSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	all := samplesOf(r, enough, features{1000, 1, 1, 1, 1, 1}, 0.1)
	if newFit(all[1:]) != nil {
		t.Errorf("%d samples were enough", enough-1)
	}
	m := model{Units: newFit(all), Tree: nil}
	seen, more, less := all[0].features, m[Units].most, m[Units].least
	more[perSector] *= 2.1
	less[perCall] /= 2.1
	for _, c := range []struct {
		x     features
		known bool
	}{{seen, true}, {m[Units].most, true}, {more, false}, {less, false}} {
		got := m.forecasts(c.x, Engines())
		if len(got) != len(Engines()) || got[0].known() != c.known || c.known && got[0].Engine != Units || got[1].known() {
			t.Errorf("%v: %v", c.x, got)
		}
	}
}

func TestHopeless(t *testing.T) {
	takes := func(us int, spread float64) forecast {
		return forecast{timed{Units, time.Duration(us) * time.Microsecond}, spread}
	}
	for name, c := range map[string]struct {
		this, best forecast
		want       bool
	}{
		"four times as long":                  {takes(40, 1.1), takes(10, 1.1), true},
		"twice as long":                       {takes(20, 1), takes(10, 1), false},
		"four times as long, or maybe two":    {takes(40, 2), takes(10, 1.1), false},
		"four times as long as maybe the two": {takes(40, 1.1), takes(10, 2), false},
		"unknown":                             {takes(0, 0), takes(10, 1), false},
		"far from what is unknown":            {takes(40, 1), takes(0, 0), false},
	} {
		if got := c.this.hopeless(c.best); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// measured is what engines took for a layout.
type measured struct {
	Layout   string
	Features features
	Times    []timed
}

// measuredOnAnH200 returns the layouts of testdata/h200.csv, what halox bench pack measured
// in microseconds on an NVIDIA H200: their features, and the times of the engines that suit.
func measuredOnAnH200(t *testing.T) (all []measured) {
	t.Helper()
	file, err := os.Open("testdata/h200.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comma = ';'
	lines, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	known, err := workloads.All()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]workloads.Workload{}
	for _, w := range known {
		byName[w.String()] = w
	}
	for _, line := range lines[1:] {
		c := measured{Layout: line[0]}
		w, ok := byName[line[0]]
		if !ok {
			t.Fatalf("no workload %q", line[0])
		}
		c.Features = featuresOf(t, w)
		for i, us := range line[1:] {
			if us == "" {
				continue
			}
			n, err := strconv.ParseFloat(us, 64)
			if err != nil {
				t.Fatal(err)
			}
			c.Times = append(c.Times, timed{Engine(lines[0][1+i]), time.Duration(n * 1e3)})
		}
		all = append(all, c)
	}
	return all
}

// featuresOf returns the features of packing a workload from memory that is aligned.
func featuresOf(t *testing.T, w workloads.Workload) features {
	t.Helper()
	c, err := NewMessageLayout(w.Send.Type, w.Send.Count)
	if err != nil {
		t.Fatal(err)
	}
	return taskFeatures(c.Layout, c.Layout.Alignment())
}

func TestModelOfAnH200(t *testing.T) {
	all := measuredOnAnH200(t)
	samples := map[Engine][]sample{}
	var asked []measured // half of the layouts, of which the model has not seen any
	for i, c := range all {
		if i%2 == 1 {
			asked = append(asked, c)
			continue
		}
		for _, m := range c.Times {
			samples[m.Engine] = append(samples[m.Engine], sample{c.Features, float64(m.Time)})
		}
	}
	m := model{}
	for e, s := range samples {
		m[e] = newFit(s)
	}
	var lost []float64
	var skipped, whole time.Duration
	off := map[Engine][]float64{}
	for _, c := range asked {
		times := map[Engine]time.Duration{}
		for _, x := range c.Times {
			times[x.Engine] = x.Time
		}
		best := slices.MinFunc(c.Times, func(a, b timed) int { return int(a.Time - b.Time) })
		var first forecast
		for _, f := range m.forecasts(c.Features, Engines()) {
			if times[f.Engine] == 0 || !f.known() {
				continue
			}
			whole += times[f.Engine]
			off[f.Engine] = append(off[f.Engine], math.Exp(math.Abs(math.Log(float64(f.Time)/float64(times[f.Engine])))))
			if !first.known() {
				first = f
				lost = append(lost, float64(times[f.Engine])/float64(best.Time))
			}
			if f.hopeless(first) {
				skipped += times[f.Engine]
				if times[f.Engine] < hopeless*best.Time {
					t.Errorf("%s: %s is said to be hopeless with %v, and takes %v; the best takes %v", c.Layout, f.Engine, f.Time, times[f.Engine], best.Time)
				}
			}
		}
	}
	for e, o := range off {
		if median := quantile(o, 50); median > 1.1 || len(o) < 100 {
			t.Errorf("%s: of %d layouts, half are off by a factor of %.2f", e, len(o), median)
		}
	}
	t.Logf("of %d layouts, what is predicted fastest takes %.2f, %.2f and %.2f times as long as the fastest (median, 90%%, 95%%); engines that are hopeless take %v of %v",
		len(lost), quantile(lost, 50), quantile(lost, 90), quantile(lost, 95), skipped, whole)
	if quantile(lost, 50) > 1.03 || quantile(lost, 90) > 1.15 || quantile(lost, 95) > 1.25 || skipped < whole*9/10 || len(lost) < 150 {
		t.Error("the model is worse than it was")
	}
}

func quantile(x []float64, percent int) float64 {
	slices.Sort(x)
	return x[(len(x)-1)*percent/100]
}
