package packing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

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

func (x features) dot(y features) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
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

// solve returns the solution in which only the features of the set have a price, and
// whether there is one without negative prices. Features that say the same as others of
// the set leave none: the set without them is as good.
func (n normal) solve(set int) (prices features, ok bool) {
	in := members(set)
	for i, r := range in {
		whole := n.left[r][r]
		for _, q := range in[:i] { // n.left[r][q] is a row of the factor below the diagonal
			n.left[r][r] -= n.left[r][q] * n.left[r][q]
		}
		if n.left[r][r] <= 1e-10*whole {
			return prices, false
		}
		n.left[r][r] = math.Sqrt(n.left[r][r])
		n.eliminate(r, in[:i], in[i+1:])
	}
	for _, r := range slices.Backward(in) {
		prices[r] = n.right[r]
		for _, q := range in {
			if q > r {
				prices[r] -= n.left[q][r] * prices[q]
			}
		}
		if prices[r] /= n.left[r][r]; prices[r] < 0 {
			return prices, false
		}
	}
	return prices, true
}

// eliminate does a column of Cholesky's factor, and the right side's share of it.
func (n *normal) eliminate(r int, before, after []int) {
	for _, q := range before {
		n.right[r] -= n.left[r][q] * n.right[q]
	}
	n.right[r] /= n.left[r][r]
	for _, s := range after {
		for _, q := range before {
			n.left[s][r] -= n.left[s][q] * n.left[r][q]
		}
		n.left[s][r] /= n.left[r][r]
	}
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
