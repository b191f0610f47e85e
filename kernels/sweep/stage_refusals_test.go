package sweep

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// Invalid stages are rejected.
func TestInvalidStages(t *testing.T) {
	set := testdevices.Host(t, 2)
	for name, change := range map[string]func(ranks []StageRank){
		"two ranks on a device":      func(ranks []StageRank) { ranks[1].Sweeper = ranks[0].Sweeper },
		"a store to an unknown rank": func(ranks []StageRank) { ranks[1].Stores[0].To = 2 },
		"a store of another size":    func(ranks []StageRank) { ranks[1].Stores[0].Ghost.Hi[0]-- },
		"a store beyond the array":   func(ranks []StageRank) { s := &ranks[1].Stores[0]; s.Ghost = s.Ghost.Shift(domain.Vec{0, 3}) },
		"a store of what is read":    func(ranks []StageRank) { ranks[1].Stores[0].Access = 0 },
		"sums of another mode": func(ranks []StageRank) {
			other, plan := *ranks[1].Sweeper, *ranks[1].Sweeper.plan
			plan.point.Sums, other.plan = sums.Fast, &plan
			ranks[1].Sweeper = &other
		},
		"an interior too large": func(ranks []StageRank) { ranks[0].Interior.Hi[0] += 2 },
		"more slabs than faces": func(ranks []StageRank) {
			for range 6 {
				ranks[0].Boundary = append(ranks[0].Boundary, ranks[0].Boundary[0])
			}
		},
		"a store of points in the interior": func(ranks []StageRank) {
			s := &ranks[0].Stores[0]
			s.Send = s.Send.Shift(domain.Vec{0, -1})
		},
		"a store of points outside the boundary region": func(ranks []StageRank) {
			s := &ranks[0].Stores[0]
			s.Send = s.Send.Shift(domain.Vec{0, 1})
		},
		"a store to ghosts that the interior reads": func(ranks []StageRank) {
			r := &ranks[1]
			r.Stores, r.Interior, r.Boundary = nil, r.Arrays[0][0].Layout.Owned, nil
		},
		"a face value beyond the array":         func(ranks []StageRank) { ranks[0].Stores[0].Odd = []domain.Vec{{0, 2}} },
		"a face value that is the point itself": func(ranks []StageRank) { ranks[0].Stores[0].Odd = []domain.Vec{{}} },
	} {
		phases := stagePair(t, set)
		change(phases[0][0])
		g, err := newStageGroup(phases, time.Second)
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
		g.resources.Close()
	}
}

// Kernels that wait for each other are rejected on CPU devices.
func TestStagesOfCPUDevices(t *testing.T) {
	phases := stagePair(t, testdevices.Host(t, 2))
	const says = "need GPUs"
	if f, err := NewFusedStages(phases, time.Second); err == nil || !strings.Contains(err.Error(), says) || f != nil {
		t.Errorf("fused: got %v, %v", f, err)
	}
	if r, err := NewResidentSteps(phases, 1, time.Second, false, nil); err == nil || !strings.Contains(err.Error(), says) || r != nil {
		t.Errorf("resident: got %v, %v", r, err)
	}
}

// Phases that are inconsistent, and stores that do not match their destination rank, are rejected with the reason.
func TestInvalidPhases(t *testing.T) {
	type phases = [][][]StageRank
	set := testdevices.Host(t, 2)
	for says, c := range map[string]struct {
		change   func(all phases) phases
		resident bool // fused stages allow this difference
	}{
		"number of phases must be at least 1": {change: func(phases) phases { return nil }},
		"phase 0 has 0":                       {change: func(phases) phases { return make(phases, 2) }},
		"stage 0 of phase 0 has 0":            {change: func(phases) phases { return phases{make([][]StageRank, 2)} }},
		"phase 1 has 2, phase 0 has 1": {change: func(all phases) phases {
			all[1] = append(all[1], all[1][0])
			return all
		}},
		"stage 0 of phase 1 has 1, stage 0 of 0 has 2": {change: func(all phases) phases {
			all[1][0] = all[1][0][:1]
			all[1][0][0].Stores = nil
			return all
		}},
		"rank 1 has boundary region [[0,64)x[32,64)x[0,1)] and interior [0,0)x[0,0)x[0,0) in phase 1": {change: func(all phases) phases {
			r := &all[1][0][1]
			r.Boundary, r.Interior = []domain.Box{r.Arrays[0][0].Layout.Owned}, domain.Box{}
			return all
		}, resident: true},
		"rank 0 has boundary region": {change: func(all phases) phases {
			slices.Reverse(all[1][0][0].Boundary)
			return all
		}, resident: true},
		"store of float64 into rank 1: element size must match, got 4 bytes": {change: func(all phases) phases {
			l := &all[0][0][0].Stores[0].Array.Layout
			*l = test.Must(domain.NewLayout(l.Owned, l.Width, 4))(t)
			return all
		}},
		"must be ghosts of": {change: func(all phases) phases {
			s := &all[0][0][0].Stores[0]
			s.Ghost = s.Ghost.Shift(domain.Vec{0, 1})
			return all[:1] // its interior does not read what it writes
		}},
		"store into rank 1: must be on device": {change: func(all phases) phases {
			s := &all[0][0][0].Stores[0]
			m := test.Must(set.Devices[0].Alloc(s.Array.Data.Length))(t)
			t.Cleanup(func() { m.Close() })
			s.Array.Data = m.All()
			return all
		}},
	} {
		g, err := newStageGroup(c.change(stagePair(t, set)), time.Second)
		if !c.resident && (err == nil || !strings.Contains(err.Error(), says)) || c.resident && err != nil {
			t.Errorf("all stages: got %v, want %q", err, says)
		}
		g.resources.Close()
		r, err := NewResidentSteps(c.change(stagePair(t, set)), 1, time.Second, true, nil)
		if err == nil {
			err = r.Close()
		}
		test.Says(t, err, says)
	}
}

// The number of phases must be a multiple of the exchange interval, and on GPUs only steps of tiles support
// intervals above one.
func TestResidentIntervals(t *testing.T) {
	set := testdevices.Host(t, 2)
	for _, group := range []int{-1, 0, 3} {
		if r, err := NewResidentSteps(stagePair(t, set), group, time.Second, false, nil); err == nil || !strings.Contains(err.Error(), "must be a multiple of the exchange interval") {
			t.Errorf("groups of %d: got %v, %v", group, r, err)
		}
	}
	phases := stagePair(t, testdevices.CPU(t, 2))
	if r, err := NewResidentSteps(phases, len(phases), time.Second, false, nil); !errors.Is(err, ErrImpossible) || r != nil {
		t.Errorf("a group on GPUs: got %v, %v", r, err)
	}
}

// Nil arguments are errors.
func TestNilIsAnError(t *testing.T) {
	set := testdevices.Host(t, 1)
	s := test.Must(stencil.HeatOf(stencil.Kind{Points: 7, Shape: stencil.StarShape}, []float64{0.1, 0.1, 0.1}, 1, 1e-3))(t)
	point, accesses, err := Linear(s, domain.Float64)
	test.Check(t, err)
	of := func(_ any, err error) error { return err }
	empty := [][][]StageRank{{{{}}}}
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"sweeps of no device":          {"device is nil", of(New(set.Compiler, nil, point, accesses))},
		"a check on no device":         {"device is nil", Check(set.Compiler, nil, point, accesses, CheckOptions{})},
		"fused stages by no sweeper":   {"must have a sweeper", of(NewFusedStages(empty, time.Second))},
		"resident steps by no sweeper": {"must have a sweeper", of(NewResidentSteps(empty, 1, time.Second, false, nil))},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", name, c.err, c.says)
		}
	}
}

// No access can have the name of a macro of the surrounding sources, which would fail only on GPUs.
func TestMacrosAreReservedNames(t *testing.T) {
	files := test.Must(filepath.Glob("../cu/*.cu*"))(t)
	macro := regexp.MustCompile(`#define (\w+)`)
	for _, file := range append(files, "source.go", "linear.go", "resident_plan.go", "stage.go", "fused.go", "resident.go", "form.go") {
		for _, m := range macro.FindAllStringSubmatch(string(readSource(t, file)), -1) {
			if name := m[1]; checkName(name) == nil {
				t.Errorf("%s defines %s, which must be rejected as a name", file, name)
			}
		}
	}
}

// twoFunctions is one source of two functions with different accesses.
const twoFunctions = `
template <typename P> __device__ __forceinline__ void widen(P &p) {
	p.set(wide[1], p.at(narrow) + 1);
	p.reduce(most, p.at(narrow));
}
template <typename P> __device__ __forceinline__ void shrink(P &p) { p.set(small, p.at(wide[1]) * p.at(wide[0])); }`

// A source may contain functions whose accesses have different names.
func TestTwoFunctionsInOneSource(t *testing.T) {
	testdevices.InTurn(t, 1, 2)
	shrink := sample{
		Point{Name: "shrink", Dims: 2, CUDA: twoFunctions, Elsewhere: []string{"wide", "narrow", "most", "small"}, Go: func(r *Row) {
			a, b, small := AtComponent[float64](r, "wide", 0, 0, 0, 0), AtComponent[float64](r, "wide", 1, 0, 0, 0), At[float64](r, "small", 0, 0, 0)
			for i := range small {
				small[i] = b[i] * a[i]
			}
		}},
		[]Access{{Name: "wide", Element: "float64", Components: 2, Footprint: stencil.Point()}, {Name: "small", Element: "float64", Write: true}},
	}
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) { checkSample(t, set, shrink) })
}
