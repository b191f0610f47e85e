package sums

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// stated is the definition in the package doc: the sum of terms cut to multiples of the lowest bin, rounded once.
func stated(terms []float64) float64 {
	largest := 0.0
	for _, x := range terms {
		largest = max(largest, math.Abs(x))
	}
	window := 0
	for new(big.Float).SetMantExp(big.NewFloat(1), 40*(window+3)-1074).Cmp(big.NewFloat(largest)) <= 0 {
		window++
	}
	sum := new(big.Int)
	for _, x := range terms {
		cut, _ := new(big.Float).SetMantExp(big.NewFloat(x), 1074-40*window).Int(nil) // towards zero
		sum.Add(sum, cut)
	}
	value, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(sum), 40*window-1074).Float64()
	return value
}

// exact is the sum without rounding.
func exact(terms []float64) *big.Float {
	sum := new(big.Float).SetPrec(4000)
	for _, x := range terms {
		sum.Add(sum, big.NewFloat(x))
	}
	return sum
}

// kind is a distribution of terms.
type kind struct {
	name string
	term func(r *rand.Rand) float64
}

func kinds() []kind {
	power := func(r *rand.Rand, low, high int) float64 {
		return math.Ldexp(1+r.Float64(), low+r.IntN(high-low))
	}
	sign := func(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }
	return []kind{
		{"near 1", func(r *rand.Rand) float64 { return 0.5 + r.Float64() }},
		{"both signs", func(r *rand.Rand) float64 { return r.NormFloat64() }},
		{"squares", func(r *rand.Rand) float64 { v := r.NormFloat64(); return v * v }},
		{"wide range", func(r *rand.Rand) float64 { return sign(r) * power(r, -300, 300) }},
		{"all exponents", func(r *rand.Rand) float64 { return sign(r) * power(r, -1070, 1010) }},
		{"denormal", func(r *rand.Rand) float64 { return sign(r) * math.Float64frombits(r.Uint64N(1<<52)) }},
		{"huge", func(r *rand.Rand) float64 { return sign(r) * power(r, 1000, 1012) }},
		{"mostly zero", func(r *rand.Rand) float64 { return float64(r.IntN(100)/99) * r.Float64() }},
		{"edge of a bin", func(r *rand.Rand) float64 { return sign(r) * math.Ldexp(1, -34+r.IntN(2)) }},
		{"bits", func(r *rand.Rand) float64 {
			for {
				if x := math.Float64frombits(r.Uint64()); math.Abs(x) < 1e300 {
					return x
				}
			}
		}},
	}
}

func (k kind) terms(r *rand.Rand, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = k.term(r)
	}
	return all
}

func TestSumsMatchTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range kinds() {
		for n := range 300 {
			terms, largest := k.terms(r, n), 0.0
			for _, x := range terms {
				largest = max(largest, math.Abs(x))
			}
			for _, assembly := range variants() {
				var s Sum
				s.addBy(assembly, terms, largest)
				if got, want := s.Value(), stated(terms); got != want {
					t.Fatalf("%v: %d terms %s: got %v, want %v", assembly, n, k.name, got, want)
				}
			}
		}
	}
}

// The error is at most n m 2^-80, and half a unit in the last place of the result.
func TestSumsAreAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range kinds() {
		for range 20 {
			terms := k.terms(r, 1000)
			var s Sum
			s.add(terms)
			largest := 0.0
			for _, x := range terms {
				largest = max(largest, math.Abs(x))
			}
			value := s.Value()
			bound := math.Ldexp(largest, -80)*float64(len(terms)) + (math.Nextafter(math.Abs(value), math.Inf(1))-math.Abs(value))/2
			off, _ := new(big.Float).Sub(exact(terms), big.NewFloat(value)).Float64()
			if math.Abs(off) > bound {
				t.Errorf("terms %s: error of %v is %v, must be at most %v", k.name, value, off, bound)
			}
		}
	}
}

// A sum does not depend on how its terms are divided and ordered.
func TestSumsDoNotDependOnOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, k := range kinds() {
		for range 50 {
			terms := k.terms(r, 500)
			var want Sum
			want.add(terms)
			r.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
			parts := make([]Sum, 1+r.IntN(9))
			for rest := terms; len(rest) > 0; {
				n := 1 + r.IntN(min(40, len(rest)))
				parts[r.IntN(len(parts))].add(rest[:n])
				rest = rest[n:]
			}
			var got Sum
			for _, i := range r.Perm(len(parts)) {
				got.Join(parts[i])
			}
			if got != want || got.Value() != want.Value() {
				t.Fatalf("terms %s: %+v in parts, %+v at once", k.name, got, want)
			}
		}
	}
}

func TestSumsOfNonFiniteTerms(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		terms []float64
		want  float64
	}{
		{[]float64{1, nan, 2}, nan}, {[]float64{1, inf, 1e308}, inf}, {[]float64{1, -inf, 1e308}, -inf},
		{[]float64{inf, 1, -inf}, nan}, {[]float64{inf, nan}, nan}, {[]float64{inf, inf}, inf}, {[]float64{-inf, nan}, nan},
		{[]float64{1.5e308, 1.5e308}, inf}, {[]float64{-1.5e308, -1.5e308}, -inf}, {[]float64{1.5e308, 1.5e308, -1.5e308}, 1.5e308},
	}
	for _, test := range tests {
		for split := range test.terms {
			var a, b Sum
			a.add(test.terms[:split])
			b.add(test.terms[split:])
			a.Join(b)
			if got := a.Value(); got != test.want && !(math.IsNaN(got) && math.IsNaN(test.want)) {
				t.Errorf("%v: got %v", test.terms, got)
			}
		}
	}
}

// Bins of 64 bits would overflow.
func TestSumsOfManyTerms(t *testing.T) {
	terms := make([]float64, 1<<22+3)
	for i := range terms {
		terms[i] = math.Nextafter(math.Ldexp(1, -34), 0) // the largest of its window
	}
	var s, all Sum
	s.add(terms)
	for range 1 << 12 {
		all.Join(s)
	}
	if got, want := all.Value(), float64(len(terms))*float64(1<<12)*terms[0]; math.Abs(got-want) > 1e-15*want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func BenchmarkAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, k := range kinds()[:3] {
		terms := k.terms(r, 256)
		largest := 0.0
		for _, x := range terms {
			largest = max(largest, math.Abs(x))
		}
		for _, assembly := range variants() {
			b.Run(fmt.Sprintf("assembly=%v/terms=%s", assembly, k.name), func(b *testing.B) {
				var s Sum
				for b.Loop() {
					s.addBy(assembly, terms, largest)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(terms)), "ns/term")
			})
		}
	}
}

// variants returns the loops to test: those in Go, and those in assembly if this processor supports them.
func variants() []bool {
	if assembly {
		return []bool{false, true}
	}
	return []bool{false}
}
