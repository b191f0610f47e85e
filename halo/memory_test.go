package halo_test

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// The memory that a plan foretells is what its fields and its exchanger take of a
// host device, which counts every byte.
func TestMemoryIsForetold(t *testing.T) {
	set := testdevices.Host(t, 4)
	specs := []halo.Spec{
		{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 2), Connectivity: halo.Corners},
		{Name: "v", Element: halo.Float32, Components: 3, SoA: true, Width: domain.UniformRadius(3, 1), Stagger: [3]bool{true, false, false}},
	}
	for _, path := range []p2p.Path{p2p.Peer, p2p.Staged, p2p.Direct} {
		p := place(t, set, []int{9, 8, 7}, [3]bool{true, false, false}, domain.Vec{1, 2, 2})
		plan, err := halo.NewPlan(p, set.Links, path, specs...)
		if err != nil {
			t.Fatal(err)
		}
		free := func() int64 { // host devices share their memory
			n, _, err := p.Devices[0].MemoryInfo()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := free()
		var open streams.Resources
		var fields []*halo.Field
		for _, s := range specs {
			f, err := halo.NewField(p, s)
			if err != nil {
				t.Fatal(err)
			}
			open.Add(f)
			fields = append(fields, f)
		}
		x, err := halo.NewExchanger(plan, set.Compiler, fields...)
		if err != nil {
			t.Fatal(err)
		}
		open.Add(x)
		var sum halo.Memory
		for rank := range p.Devices {
			m, err := plan.Memory(rank)
			if err != nil {
				t.Fatal(err)
			}
			sum.Fields, sum.Buffers = sum.Fields+m.Fields, sum.Buffers+m.Buffers
		}
		if took := before - free(); sum.Fields+sum.Buffers != took {
			t.Errorf("path %s: %+v foretold, %d taken", path, sum, took)
		}
		if err := open.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What goes through the host as it lies takes the gaps between its rows along: here
// 3 rows of 16 numbers, and the 5 points of a fourth.
func TestMemoryOfStagedFaces(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{5, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
	for name, c := range map[string]struct {
		specs  []halo.Spec
		pinned int64
	}{
		"as it lies":       {[]halo.Spec{star(3)}, (3*16 + 5) * 8},
		"packed, of two":   {[]halo.Spec{star(3), star(3)}, 2 * 5 * 4 * 8},
		"nothing to bring": {[]halo.Spec{{Name: "u", Element: halo.Float64}}, 0},
	} {
		plan := must(halo.NewPlan(p, set.Links, p2p.Staged, c.specs...))(t)
		m := must(plan.Memory(1))(t)
		if m.Pinned != c.pinned {
			t.Errorf("%s: %d bytes, not %d", name, m.Pinned, c.pinned)
		}
	}
}
