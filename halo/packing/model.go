package packing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// timed is what an engine took, or will.
type timed struct {
	Engine Engine        `json:"engine"`
	Time   time.Duration `json:"ns"`
}

func listTimes(times []timed) string {
	var all []string
	for _, m := range times {
		all = append(all, fmt.Sprintf("%s %s", m.Engine, p2p.Microseconds(m.Time)))
	}
	return strings.Join(all, ", ")
}

// model says what tasks of one kind will take: a fit for each engine of which enough was
// measured.
type model map[Engine]*fit

// forecast is what an engine will take, by the model.
type forecast struct {
	timed          // Time is 0 where the model cannot tell
	spread float64 // see fit
}

// known reports whether the model can tell.
func (f forecast) known() bool { return f.Time > 0 }

// forecasts returns what engines will take for a task that suits them, the fastest
// first, those of which nothing is known last.
func (m model) forecasts(x features, engines []Engine) (all []forecast) {
	var unknown []forecast
	for _, e := range engines {
		if f := m[e]; f != nil && f.covers(x) {
			all = append(all, forecast{timed{e, f.predict(x)}, f.spread})
		} else {
			unknown = append(unknown, forecast{timed: timed{Engine: e}})
		}
	}
	slices.SortStableFunc(all, func(a, b forecast) int { return cmp.Compare(a.Time, b.Time) })
	return append(all, unknown...)
}

// hopeless is how many times as long as the fastest an engine takes that is not measured again, or not at all.
const hopeless = 3

// hopeless reports whether an engine is far from another even if the model is as wrong
// about both as it has been.
func (f forecast) hopeless(other forecast) bool {
	return f.known() && other.known() && float64(f.Time)/f.spread > hopeless*float64(other.Time)*other.spread
}

// sample is what an engine took for a task, in nanoseconds.
type sample struct {
	features
	time float64
}

// fit is what an engine's time is made of.
type fit struct {
	prices      features // nanoseconds for one of each feature, never negative
	spread      float64  // 95% of the samples took from 1/spread to spread times what is predicted
	least, most features // that samples have
}

// enough is how many samples a fit takes at least.
const enough = 3 * numFeatures

// newFit returns nil where the samples are too few.
func newFit(all []sample) *fit {
	if len(all) < enough {
		return nil
	}
	f := &fit{prices: fitPrices(all), least: all[0].features, most: all[0].features}
	var off []float64
	for _, s := range all {
		off = append(off, math.Abs(math.Log(f.prices.dot(s.features)/s.time)))
		for i, n := range s.features {
			f.least[i], f.most[i] = min(f.least[i], n), max(f.most[i], n)
		}
	}
	slices.Sort(off)
	f.spread = math.Exp(off[(len(off)-1)*95/100])
	return f
}

// covers reports whether all features of a task are within a factor of two of those of
// the samples: further out, a price that hardly counted before may be all that counts.
func (f *fit) covers(x features) bool {
	for i, n := range x {
		if n < f.least[i]/2 || n > f.most[i]*2 {
			return false
		}
	}
	return true
}

// predict returns what a task will take, never less than a nanosecond.
func (f *fit) predict(x features) time.Duration {
	return time.Duration(max(1, math.Round(f.prices.dot(x))))
}

func (f features) dot(y features) (sum float64) {
	for i := range f {
		sum += f[i] * y[i]
	}
	return sum
}

// fitPrices returns the prices, none negative, for which the sum of the squares of
// prices*features/time - 1 is least. These are relative errors, so that what takes
// microseconds counts as much as what takes milliseconds.
//
// Of the features that have a price above zero in the best solution, the prices are those
// of the best solution of any sign. Features are few, so all sets of them are tried.
func fitPrices(all []sample) (best features) {
	n := newNormal(all)
	most := 0.0
	for set := 1; set < 1<<numFeatures; set++ {
		prices, ok := n.solve(set)
		if won := prices.dot(n.right); ok && won > most { // what is left is len(all) - won
			best, most = prices, won
		}
	}
	return best
}

// normal is the normal equations of a least squares problem.
type normal struct {
	left  [numFeatures]features
	right features
}

// newNormal returns those of prices*features/time = 1.
func newNormal(all []sample) (n normal) {
	for _, s := range all {
		for r := range numFeatures {
			for c := range numFeatures {
				n.left[r][c] += s.features[r] / s.time * s.features[c] / s.time
			}
			n.right[r] += s.features[r] / s.time
		}
	}
	return n
}

// solve returns the solution in which only the features of the set have a price, by elimination, and whether it exists
// without negative prices. Features that say the same as others of the set leave none: the set without them is as good.
func (n normal) solve(set int) (prices features, ok bool) {
	in, whole := members(set), n.left
	for _, r := range in {
		if n.left[r][r] <= 1e-10*whole[r][r] {
			return prices, false
		}
		for _, s := range in {
			if s == r {
				continue
			}
			factor := n.left[s][r] / n.left[r][r]
			for _, q := range in {
				n.left[s][q] -= factor * n.left[r][q]
			}
			n.right[s] -= factor * n.right[r]
		}
	}
	for _, r := range in {
		if prices[r] = n.right[r] / n.left[r][r]; prices[r] < 0 {
			return prices, false
		}
	}
	return prices, true
}

// members returns the numbers of the bits that are set.
func members(set int) (in []int) {
	for i := range numFeatures {
		if set>>i&1 == 1 {
			in = append(in, i)
		}
	}
	return in
}

// tuning is what was measured of a layout.
type tuning struct {
	Kind     string   `json:"kind"`   // of task: what the times depend on besides the layout
	Layout   string   `json:"layout"` // its name
	Features features `json:"features"`
	Times    []timed  `json:"times"`             // the fastest first
	Skipped  []timed  `json:"skipped,omitempty"` // was not measured: the model says that it takes so long
}

// valid reports whether a tuning is one that was measured of these engines, as far as can be seen.
func (t *tuning) valid(engines []Engine) bool {
	wrong := func(m timed) bool { return m.Time <= 0 || !slices.Contains(engines, m.Engine) }
	return len(t.Times) > 0 && t.Features[perLaunch] == 1 && slices.Min(t.Features[:]) >= 0 &&
		!slices.ContainsFunc(t.Times, wrong) && !slices.ContainsFunc(t.Skipped, wrong)
}

// tuningCache remembers what the engines took, in the cache too.
type tuningCache struct {
	mu     sync.Mutex
	store  cache.Store[[]tuning] // for each kind of device
	all    []tuning              // the oldest first, at most maxTunings
	models map[string]model      // fitted to them, by kind
}

// tuningsVersion changes when the features of a task do, or how it is measured. The engines have revisions of their
// own.
const tuningsVersion = 3

// maxTunings is how many layouts are remembered. The file is written with each new one.
const maxTunings = 512

// open finds what was remembered of a device and the engines, with their revisions, in a folder of
// the cache, see Options.
func (t *tuningCache) open(folder string, d *streams.Device, engines []Engine, revisions []int) {
	key := []any{tuningsVersion, engines, revisions, d.Backend, d.Name, d.Arch}
	t.store = cache.Remember(cache.At(folder), "packing", key, func(all []tuning) bool {
		return !slices.ContainsFunc(all, func(x tuning) bool { return !x.valid(engines) })
	})
	t.all, _ = t.store.Get()
}

// get returns what was measured for a layout.
func (t *tuningCache) get(kind, layout string) (tuning, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.all, func(x tuning) bool { return x.Layout == layout && x.Kind == kind })
	if i < 0 {
		return tuning{}, false
	}
	return t.all[i], true
}

// put remembers a tuning, on disk if that is possible. Packers of equal devices share the
// file: what others have put there since stays, and is remembered here too.
func (t *tuningCache) put(x tuning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.models = nil
	t.all = latest(t.all, []tuning{x})
	_ = t.store.Update(func(others []tuning) []tuning { // where that fails it is measured again next time
		t.all = latest(t.all, others, []tuning{x})
		return t.all
	})
}

// latest joins lists, each later than the one before. Of tunings for the same layout it
// keeps the last, and of all no more than maxTunings: it forgets the oldest.
func latest(lists ...[]tuning) []tuning {
	type name struct{ kind, layout string }
	seen := map[name]bool{}
	var all []tuning
	for _, x := range slices.Backward(slices.Concat(lists...)) {
		n := name{x.Kind, x.Layout}
		if !seen[n] && len(all) < maxTunings {
			all = append(all, x)
		}
		seen[n] = true
	}
	slices.Reverse(all)
	return all
}

// model returns the model for a kind of task, fitted to all that is remembered of it.
func (t *tuningCache) model(kind string) model {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.models[kind]; ok {
		return m
	}
	samples := map[Engine][]sample{}
	for _, x := range t.all {
		for _, m := range x.Times {
			if x.Kind == kind {
				samples[m.Engine] = append(samples[m.Engine], sample{x.Features, float64(m.Time)})
			}
		}
	}
	m := model{}
	for e, all := range samples {
		m[e] = newFit(all) // nil is as good as none
	}
	if t.models == nil {
		t.models = map[string]model{}
	}
	t.models[kind] = m
	return m
}
