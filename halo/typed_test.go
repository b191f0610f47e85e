package halo_test

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"pgregory.net/rapid"
)

// particle is a struct { x float64; id int32; _ [12]byte; v [3]float32; _ [4]byte } that begins 8 bytes
// before x.
func particle(t *testing.T) *datatype.Type {
	all := must(datatype.Struct([]int{1, 1, 3}, []int64{0, 8, 24}, []*datatype.Type{datatype.Float64, datatype.Int32, datatype.Float32}))(t)
	return must(datatype.Resized(all, -8, 48))(t)
}

// typed is a field of values of a type.
func typed(t *datatype.Type, reach halo.Connectivity) halo.Spec {
	return halo.Spec{Name: "typed", Type: t, Connectivity: reach,
		Width: domain.Radius{Minus: domain.Vec{1, 2, 1}, Plus: domain.Vec{2, 1, 1}}}
}

// Only the named bytes of values with gaps move, over every path, separately and with other fields, for any
// late subdomain.
func TestExchangeOfTypes(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	sparse := must(datatype.Indexed([]int{1, 2}, []int{1, 4}, datatype.Uint16))(t) // its extent ends with its bytes
	triples, arrays, dense := typed(particle(t), halo.Corners), typed(particle(t), halo.Edges), typed(datatype.Complex64, halo.Faces)
	triples.Components = 3
	arrays.SoA, arrays.Components = true, 2
	arrays.Widths = []domain.Radius{arrays.Width, domain.UniformRadius(3, 1)}
	around := [3]bool{true, true, true}
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		exchangeCases(t, set, []exchangeCase{
			{"every direction", []int{7, 5, 4}, around, domain.Vec{1, 2, 2}, []halo.Spec{typed(particle(t), halo.Corners)}},
			{"its own neighbor", []int{3, 4, 5}, around, domain.Vec{1, 1, 1}, []halo.Spec{typed(sparse, halo.Corners)}},
			{"planes", []int{4, 5, 6}, [3]bool{}, domain.Vec{1, 1, 4}, []halo.Spec{typed(sparse, halo.Faces)}},
			{"without gaps", []int{4, 5, 6}, [3]bool{}, domain.Vec{1, 1, 2}, []halo.Spec{dense}},
			{"with other fields", []int{5, 6, 4}, around, domain.Vec{1, 2, 1}, []halo.Spec{star(3), triples, arrays, dense, star(3)}},
		}, "start", "transfers")
	})
}

// Consecutive values are one extent apart; types without gaps are exchanged like numbers.
func TestFieldsOfTypes(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{4, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
	s := typed(particle(t), halo.Faces)
	s.Components, s.Width = 2, domain.UniformRadius(3, 1)
	f := openField(t, p, s)
	plan := must(halo.NewPlan(p, set.Links, p2p.Peer, s))(t)
	if got := f.Parts[0].Layout.ElementSize; got != 2*48 || plan.Bytes() != 2*4*4*2*24 || plan.Messages[0].Contiguous {
		t.Errorf("points of %d bytes, %d bytes sent", got, plan.Bytes())
	}
	again, dense := s, typed(datatype.Complex64, halo.Faces)
	again.Type = particle(t)
	if !s.Covers(again) || s.Covers(dense) || !s.IsTyped() || star(3).IsTyped() {
		t.Error("types are compared by their construction")
	}
	dense.Width = s.Width
	if m := must(halo.NewPlan(p, set.Links, p2p.Peer, dense))(t).Messages[0]; !m.Contiguous || m.Bytes != 4*4*8 {
		t.Errorf("without gaps: %+v", m)
	}
	type value [96]byte
	test.Report(t, halo.FillPoints(f, func(domain.Vec) (v value) { return value{9: 1} }))
	if got, err := halo.ReadAll[value](f); err != nil || got[5] != (value{9: 1}) {
		t.Errorf("read %v, %v", got, err)
	}
}

// Types whose values cannot be consecutive, or that are not numbers if numbers are needed, are rejected.
func TestInvalidTypes(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{4, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
	resized := func(lb, extent int64) *datatype.Type { return must(datatype.Resized(datatype.Int64, lb, extent))(t) }
	twice := must(datatype.HIndexed([]int{1, 1}, []int64{0, 4}, datatype.Int64))(t)
	both := typed(particle(t), halo.Faces)
	both.Element = halo.Int64
	for name, c := range map[string]struct {
		says string
		spec halo.Spec
	}{
		"an element too":      {"got both", both},
		"nothing":             {"got 0 bytes", typed(must(datatype.Contiguous(0, datatype.Byte))(t), halo.Faces)},
		"no extent":           {"extent 0", typed(resized(0, 0), halo.Faces)},
		"backwards":           {"extent -8", typed(resized(0, -8), halo.Faces)},
		"beyond its extent":   {"must be inside the extent", typed(resized(0, 4), halo.Faces)},
		"before its extent":   {"must be inside the extent", typed(resized(4, 16), halo.Faces)},
		"bytes that are two":  {"twice", typed(twice, halo.Faces)},
		"an extent too large": {"an extent between 1 and", typed(resized(0, 1<<40), halo.Faces)},
	} {
		refuses(t, name, errorOf(halo.NewField(p, c.spec)), c.says)
	}
	f := openField(t, p, halo.Spec{Name: "u", Type: particle(t), Width: domain.UniformRadius(3, 1)})
	plan := must(halo.NewPlan(p, set.Links, p2p.Auto, f.Spec))(t)
	refuses(t, "accumulate", errorOf(halo.NewAccumulator(plan, set.Compiler, f)), "must be numbers")
	refuses(t, "reduce", errorOf(halo.NewReduction(f, set.Compiler, halo.Sum)), "must be numbers")
}

// Write changes only the owned points of its box; Read returns the written values.
func TestWrite(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPlace(t, set, 9)
			s := drawSpec(t, 0, p)
			s.Element, s.Components, s.Widths = halo.Int64, 1, nil
			f := openField(t, p, s)
			var box domain.Box
			for a, n := range f.Cut.Grid.Size {
				box.Lo[a] = rapid.IntRange(0, n-1).Draw(t, "lo")
				box.Hi[a] = rapid.IntRange(box.Lo[a], n).Draw(t, "hi")
			}
			want := take(t, f)
			want.each(func(rank, v int, at domain.Vec) { want.set(rank, v, at, scatter(0, rank, v, at)) })
			want.put(t)
			var values []int64
			eachPoint(box, func(at domain.Vec) { values = append(values, 1000+int64(len(values))) })
			done(t, nil, halo.Write(f, box, values))
			i := 0
			eachPoint(box, func(at domain.Vec) {
				for rank := range f.Parts {
					if want.owned(rank).Contains(at) {
						want.set(rank, 0, at, float64(values[i]))
					}
				}
				i++
			})
			same(t, take(t, f), want)
			got := make([]int64, len(values))
			done(t, nil, halo.Read(got, f, box))
			for i := range got {
				if got[i] != values[i] {
					t.Fatalf("value %d was written as %d and read as %d", i, values[i], got[i])
				}
			}
		})
	})
}
