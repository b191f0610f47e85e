package solvers

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers/scheme"
)

// Statistics are those of the fields after the steps of the samples, and a run with them has the fields of one without.
func TestStatistics(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		for i, name := range []scheme.Scheme{scheme.Baseline, scheme.Fused, scheme.Blocked, scheme.Graph} {
			for j, element := range []domain.Element{domain.Float64, domain.Float32} {
				if !testdevices.Turn(2*i+j, 1, 3) {
					continue
				}
				t.Run(fmt.Sprintf("scheme=%s/element=%s", name, element), func(t *testing.T) {
					p := problem(t, []int{9, 6, 8}, element, "ddnndd")
					for _, kind := range []StatisticKind{Max, Variance, Min} {
						p.Statistics = append(p.Statistics, Statistic{kind, "u"})
					}
					h := how{path: pathOf(name), parts: domain.Vec{1, 1, len(set.Devices)}}
					checkStatistics(t, p, prepare(t, set, p, h), name)
					extra := func(p *Problem) (sum int64) {
						o := how{scheme: name, order: scheme.LeftRight}.options(scheme.Options{Steps: 1})
						for _, m := range must(DryRun(t.Context(), p, planFor(t, set, p, h), set.Compiler, o))(t) {
							sum += m.Extra
						}
						return sum
					}
					bare := *p
					bare.Statistics = nil
					if n := extra(p) - extra(&bare); n < 4*p.Grid.Points()*int64(element.Size()) {
						t.Errorf("a dry run counts %d bytes of statistics", n)
					}
				})
			}
		}
	})
}

func checkStatistics(t *testing.T, p *Problem, s *Solver, name scheme.Scheme) {
	o, samples := newOracle(p), [][]float64(nil)
	for _, steps := range []int64{3, 1, 4, 4} {
		o := o
		must(s.Run(context.Background(), how{scheme: name, order: scheme.LeftRight}.options(scheme.Options{Steps: steps})))(t)
		for range steps {
			o.step()
		}
		succeeds(t, s.Statistics.Take(context.Background()))
		samples = append(samples, append([]float64(nil), o.values()...))
		compare(t, p.Grid, read(t, s), o.values())
	}
	eps := map[domain.Element]float64{domain.Float64: 1e-15, domain.Float32: 1e-6}[p.Element]
	all := map[string][]float64{}
	for i, f := range s.Statistics.Fields() {
		values := make([]float64, p.Grid.Points())
		read := func(narrow []float32) error { return halo.Read(narrow, f, p.Grid.Box()) }
		if p.Element == domain.Float64 {
			succeeds(t, halo.Read(values, f, p.Grid.Box()))
		} else {
			succeeds(t, widened(values, read))
		}
		all[s.Statistics.Names[i]] = values
	}
	if len(all) != 4 || s.Statistics.Samples() != 4 {
		t.Fatalf("%d samples of %q", s.Statistics.Samples(), s.Statistics.Names)
	}
	for i := range samples[0] {
		mean, variance, low, high := 0.0, 0.0, math.Inf(1), math.Inf(-1)
		for _, of := range samples {
			mean, low, high = mean+of[i]/4, min(low, of[i]), max(high, of[i])
		}
		for _, of := range samples {
			variance += (of[i] - mean) * (of[i] - mean) / 4
		}
		size := max(math.Abs(low), math.Abs(high))
		if all["min_u"][i] != low || all["max_u"][i] != high || math.Abs(all["mean_u"][i]-mean) > 4*eps*size ||
			math.Abs(all["variance_u"][i]-variance) > 8*eps*size*(high-low)+4*eps*variance {
			t.Fatalf("point %d: min %v, max %v, mean %v, variance %v; must be %v, %v, %v, %v", i, all["min_u"][i],
				all["max_u"][i], all["mean_u"][i], all["variance_u"][i], low, high, mean, variance)
		}
	}
	if all["variance_u"][5] == 0 || all["min_u"][5] == all["max_u"][5] {
		t.Error("the field does not change")
	}
}
