package halo_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Fields and an exchanger on dry-run devices allocate exactly the bytes that they allocate on the real
// devices, and the dry run allocates nothing. Types with gaps use the engine measured to be the fastest;
// without a measurement the dry run is an upper bound.
func TestDryRunCountsAllocations(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	t.Setenv("HALOX_CACHE", t.TempDir())
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 4 {
			t.Skip("SKIPPED: needs 4 devices")
		}
		for name, specs := range map[string][]halo.Spec{
			"star":       {star(3)},
			"components": {{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 2), Connectivity: halo.Corners}, {Name: "v", Element: halo.Float32, Components: 3, SoA: true, Width: domain.UniformRadius(3, 1), Stagger: []bool{true, false, false}}},
			"typed":      {typed(particle(t), halo.Faces), star(3)},
		} {
			for _, path := range paths {
				p := place(t, set, []int{9, 8, 7}, [3]bool{true, false, false}, domain.Vec{1, 2, 2})
				plan := must(halo.NewPlan(p, set.Links, path, specs...))(t)
				peaks(p)
				before := dryPeaks(t, plan, set, specs)
				for rank, one := range peaks(p) {
					if one != (streams.Held{}) {
						t.Errorf("%s by %s: the dry run took %+v of rank %d", name, path, one, rank)
					}
				}
				first := held(t, p, plan, set, specs)
				got, after := held(t, p, plan, set, specs), dryPeaks(t, plan, set, specs)
				for rank := range got {
					if got[rank] != after[rank] || got[rank].Memory == 0 || name != "typed" && before[rank] != after[rank] {
						t.Errorf("%s by %s: rank %d holds %+v, in the dry runs %+v and %+v", name, path, rank, got[rank], before[rank], after[rank])
					}
					if first[rank].Memory > before[rank].Memory || first[rank].Pinned > before[rank].Pinned {
						t.Errorf("%s by %s: rank %d held %+v at first, in the dry run %+v", name, path, rank, first[rank], before[rank])
					}
				}
			}
		}
	})
}

// dryPeaks returns the peak memory of fields and an exchanger by a dry run.
func dryPeaks(t *testing.T, plan *halo.Plan, set *testdevices.Set, specs []halo.Spec) []streams.Held {
	t.Helper()
	dry := plan.Placement.DryRun()
	all := held(t, dry, plan.On(dry), set, specs)
	done(t, nil, streams.CloseAll(dry.Devices))
	return all
}

// peaks returns the peak memory of the devices since the previous call.
func peaks(p *halo.Placement) (all []streams.Held) {
	for _, d := range p.Devices {
		most := d.Peak()
		all = append(all, most)
	}
	return all
}

// held returns the peak memory of fields, which are filled and read, and an exchanger.
func held(t *testing.T, p *halo.Placement, plan *halo.Plan, set *testdevices.Set, specs []halo.Spec) []streams.Held {
	t.Helper()
	var all streams.Resources
	var fields []*halo.Field
	for _, s := range specs {
		f := must(halo.NewField(p, s))(t)
		fields = append(fields, f)
		all.Add(f)
	}
	if !specs[0].IsTyped() {
		done(t, nil, halo.FillPoints(fields[0], func(domain.Vec) float64 { return 1 }))
		must(halo.ReadAll[float64](fields[0]))(t)
	}
	all.Add(must(halo.NewExchanger(plan, set.Compiler, fields...))(t))
	done(t, nil, all.Close())
	return peaks(p)
}

// A staged contiguous face includes the gaps between its rows: here 3 rows of 16 numbers, and 5 points of a
// fourth.
func TestMemoryOfStagedFaces(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{5, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
	for name, c := range map[string]struct {
		specs  []halo.Spec
		pinned int64
	}{
		"contiguous":       {[]halo.Spec{star(3)}, (3*16 + 5) * 8},
		"packed, of two":   {[]halo.Spec{star(3), star(3)}, 2 * 5 * 4 * 8},
		"nothing to bring": {[]halo.Spec{{Name: "u", Element: halo.Float64}}, 0},
	} {
		plan := must(halo.NewPlan(p, set.Links, p2p.Staged, c.specs...))(t)
		dry := p.DryRun()
		var fields []*halo.Field
		for _, s := range c.specs {
			fields = append(fields, openField(t, dry, s))
		}
		must(halo.NewExchanger(plan.On(dry), set.Compiler, fields...))(t)
		if now := dry.Devices[1].Held(); now.Pinned != c.pinned {
			t.Errorf("%s: %d bytes, not %d", name, now.Pinned, c.pinned)
		}
		done(t, nil, streams.CloseAll(dry.Devices))
	}
}

// Levels of a variable, and components of a field, share pinned memory for transfers to and from the host,
// until the last of them is closed.
func TestLevelsShareStages(t *testing.T) {
	set := testdevices.Host(t, 1)
	p := place(t, set, []int{5, 4, 6}, [3]bool{}, domain.Vec{1, 1, 1})
	levels := must(halo.NewFields(p, star(3), 3))(t)
	pinned := func() int64 {
		now := p.Devices[0].Held()
		return now.Pinned
	}
	for i, f := range levels {
		done(t, nil, halo.FillPoints(f, func(domain.Vec) float64 { return float64(i) }))
	}
	if want := levels[0].Parts[0].Layout.Bytes(); pinned() != want {
		t.Errorf("%d bytes of pinned memory, not %d", pinned(), want)
	}
	for i, f := range levels {
		if got := must(halo.ReadAll[float64](f))(t); got[7] != float64(i) {
			t.Errorf("level %d holds %v", i, got[7])
		}
		if done(t, nil, f.Close(), f.Close()); (pinned() == 0) != (i == 2) {
			t.Errorf("after level %d was closed: %d bytes", i, pinned())
		}
	}
}

// Fields that do not fit are rejected before any allocation, with the sizes and streams.ErrOutOfMemory.
func TestFieldsThatDoNotFit(t *testing.T) {
	set := testdevices.Host(t, 2)
	for name, size := range map[string][]int{"more than available": {1 << 14, 1 << 14, 1 << 10}, "the most": {1 << 17, 1 << 17, 1 << 16}} {
		p := place(t, set, size, [3]bool{}, domain.Vec{1, 1, 2})
		_, err := halo.NewField(p, star(3))
		if !errors.Is(err, streams.ErrOutOfMemory) || !strings.Contains(err.Error(), "need ") || !strings.Contains(err.Error(), " are available: ") {
			t.Errorf("%s: got %v", name, err)
		}
		for rank, one := range peaks(p) {
			if one != (streams.Held{}) {
				t.Errorf("%s: rank %d held %+v", name, rank, one)
			}
		}
	}
	p := place(t, set, []int{8, 8, 8}, [3]bool{}, domain.Vec{1, 1, 2})
	test.Is(t, halo.Fit(p, math.MaxInt, star(3)), streams.ErrOutOfMemory)
	test.Report(t, halo.Fit(p, 3, star(3), star(3)))
	if err := halo.Fit(p, -1, star(3)); err == nil {
		t.Error("a negative number of fields is accepted")
	}
}

// Fields too large for any memory cannot be planned together: sums over their messages would exceed 64 bits.
func TestPlansBeyond64Bits(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{1 << 16, 1 << 16, 1 << 8}, [3]bool{}, domain.Vec{1, 1, 2})
	big := star(3)
	big.Components = 1 << 14
	if _, err := halo.NewPlan(p, set.Links, p2p.Peer, big); err != nil {
		t.Error(err)
	}
	refuses(t, "four big fields", errorOf(halo.NewPlan(p, set.Links, p2p.Peer, big, big, big, big)), "at most 2^58 bytes")
}
