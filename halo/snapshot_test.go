package halo_test

import (
	"bytes"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// A snapshot keeps the values of its time, including ghosts, also of arrays of the caller and of two levels that
// share their stages. Its fields are read as bytes, whatever a point is.
func TestSnapshot(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{9, 8, 7}, [3]bool{}, domain.Vec{1, 1, 2})
		spec := star(3)
		levels := must(halo.NewFields(p, spec, 2))(t)
		vector := openField(t, p, halo.Spec{Name: "v", Element: halo.Float32, Components: 3})
		both := openField(t, p, halo.Spec{Name: "w", Element: halo.Int32, Components: 2, SoA: true})
		var arrays []kernels.Array
		for rank, s := range p.Subdomains {
			l := must(domain.NewStridedLayout(s.Box, spec.Width, 8, 200, 13, 131))(t)
			arrays = append(arrays, kernels.Array{Data: open(p.Devices[rank].Alloc(l.Bytes() + 64))(t).All(), Layout: l})
		}
		wrapped := open(halo.WrapField(p, spec, arrays...))(t)
		fields := []*halo.Field{levels[0], levels[1], vector, both, wrapped}
		fill := func(factor int) {
			t.Helper()
			for i, f := range fields {
				parts := []*halo.Field{f}
				if f == both {
					parts = []*halo.Field{open(f.Component(0))(t), open(f.Component(1))(t)}
				}
				for c, part := range parts {
					done(t, nil, halo.Fill(part, func(int) halo.Row[byte] {
						return func(values []byte, at domain.Vec) {
							for j := range values {
								values[j] = byte(factor * (i + 3*c + j + 5*at[0] + 7*at[1] + 11*at[2]))
							}
						}
					}))
				}
			}
		}
		content := func(fields []*halo.Field) (all []byte) {
			t.Helper()
			for _, f := range fields {
				parts := []*halo.Field{f}
				if count, _ := f.Spec.Arrays(); count == 2 {
					parts = []*halo.Field{open(f.Component(0))(t), open(f.Component(1))(t)}
				}
				for _, part := range parts {
					for rank, sub := range p.Subdomains {
						box := sub.Box.Grow(part.Spec.Width)
						_, size := part.Spec.Arrays()
						values := make([]byte, box.Points()*int64(size))
						done(t, nil, halo.ReadSubdomain(values, part, rank, box))
						all = append(all, values...)
					}
				}
			}
			return all
		}
		s := must(halo.NewSnapshot(t.Context(), fields...))(t)
		fill(1)
		first := content(fields)
		done(t, nil, s.Take(fields...))
		fill(3)
		if got := content(s.Fields()); !bytes.Equal(got, first) || bytes.Equal(got, content(fields)) {
			t.Error("the snapshot does not hold the values of its time")
		}
		fields[0], fields[1] = fields[1], fields[0] // levels rotate
		done(t, nil, s.Take(fields...))
		if got := content(s.Fields()); !bytes.Equal(got, content(fields)) {
			t.Error("the second snapshot holds other values")
		}
		refuses(t, "another number", s.Take(levels...), "must have 5 fields, got 2")
		refuses(t, "another order", s.Take(vector, levels[0], levels[1], both, wrapped), "decompositions and devices")
		done(t, nil, s.Close(), s.Close(), levels[0].Close(), levels[1].Close())
	})
}

// Boxes whose points are a small part of the memory around them are copied alone: a write changes nothing else.
func TestBoxesInLongRows(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{100, 11, 9}, [3]bool{}, domain.Vec{1, 1, 2})
		f := openField(t, p, star(3))
		before := func(at domain.Vec) float64 { return float64(at[0] + 1000*at[1] + 1000000*at[2]) }
		done(t, nil, halo.FillPoints(f, before))
		box := domain.Box{Lo: domain.Vec{20, 2, 1}, Hi: domain.Vec{60, 9, 8}}
		values := make([]float64, box.Points())
		done(t, nil, halo.Read(values, f, box))
		i := 0
		eachPoint(box, func(at domain.Vec) {
			if values[i] != before(at) {
				t.Fatalf("point %v: got %v, want %v", at, values[i], before(at))
			}
			values[i] = -values[i]
			i++
		})
		done(t, nil, halo.Write(f, box, values))
		for rank, s := range p.Subdomains {
			full := s.Box.Grow(f.Spec.Width)
			all := make([]float64, full.Points())
			done(t, nil, halo.ReadSubdomain(all, f, rank, full))
			i := 0
			eachPoint(full, func(at domain.Vec) {
				want := before(at)
				if box.Contains(at) && s.Box.Contains(at) {
					want = -want
				}
				if all[i] != want {
					t.Fatalf("subdomain %d, point %v: got %v, want %v", rank, at, all[i], want)
				}
				i++
			})
		}
	})
}

// A snapshot in a dry run counts the bytes that one on the devices holds.
func TestSnapshotInDryRun(t *testing.T) {
	p := place(t, testdevices.Host(t, 2), []int{30, 11, 9}, [3]bool{}, domain.Vec{1, 1, 2})
	dry := p.DryRun()
	defer func() { done(t, nil, streams.CloseAll(dry.Devices)) }()
	var all [2][]streams.Held
	for i, p := range []*halo.Placement{p, dry} {
		u, v := openField(t, p, star(3)), openField(t, p, halo.Spec{Name: "v", Element: halo.Int32, Components: 3, SoA: true})
		peaks(p)
		s := must(halo.NewSnapshot(t.Context(), u, v))(t)
		done(t, nil, s.Take(u, v), s.Close())
		all[i] = peaks(p)
	}
	for rank := range all[0] {
		if all[0][rank] != all[1][rank] || all[0][rank].Memory == 0 {
			t.Errorf("rank %d holds %+v, in the dry run %+v", rank, all[0][rank], all[1][rank])
		}
	}
}
