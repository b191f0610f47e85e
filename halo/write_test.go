package halo_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

// Write changes the owned points of its box, and no ghost and no other point; Read
// gives back what it wrote.
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
