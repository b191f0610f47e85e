package halo_test

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Arrays of the caller, without padding and with different layouts per subdomain, are exchanged like any
// other field; so are values with gaps.
func TestExchangeOfTheCallersArrays(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	value := func(n int) float64 { return float64(n) }
	structs := typed(particle(t), halo.Faces)
	marked := func(gaps byte) func(n int) [48]byte {
		return func(n int) (v [48]byte) {
			for i := range v {
				if v[i] = gaps; i >= 8 && i < 20 || i >= 32 && i < 44 { // see particle
					v[i] = byte(n)
				}
			}
			return v
		}
	}
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, path := range paths {
			for _, parts := range []domain.Vec{{1, 1, 4}, {2, 1, 2}, {1, 4, 1}} {
				p := place(t, set, []int{9, 8, 12}, [3]bool{true, false, true}, parts)
				exchangeNumbers(t, set, p, star(3), path, value, value)
			}
			p := place(t, set, []int{4, 3, 6}, [3]bool{true, false, true}, domain.Vec{1, 1, 2})
			exchangeNumbers(t, set, p, structs, path, marked(0x7f), marked(0))
		}
	})
}

// exchangeNumbers wraps arrays as a field, sets every owned point to its number, counted from 1, exchanges
// the field, and compares every ghost behind a face.
func exchangeNumbers[T comparable](
	t *testing.T, set *testdevices.Set, p *halo.Placement, spec halo.Spec, path p2p.Path, owned, ghost func(n int) T,
) {
	t.Helper()
	var zero T
	var arrays []kernels.Array
	for rank, s := range p.Subdomains {
		size := s.Box.Grow(spec.Width).Size()
		pitch := int64(size[0] + rank%2)
		plane := pitch * int64(size[1]+rank)
		first := int64(1+spec.Width.Minus[0]) + int64(spec.Width.Minus[1])*pitch + int64(spec.Width.Minus[2])*plane
		l := must(domain.NewStridedLayout(s.Box, spec.Width, int(unsafe.Sizeof(zero)), first, pitch, plane))(t)
		arrays = append(arrays, kernels.Array{Data: callers(t, p.Devices[rank], l.Bytes()).All(), Layout: l})
	}
	f := open(halo.WrapField(p, spec, arrays...))(t)
	number := func(at domain.Vec) int {
		for a, n := range p.Grid.Size {
			at[a] = (at[a] + n) % n
		}
		return 1 + at[0] + p.Grid.Size[0]*(at[1]+p.Grid.Size[1]*at[2])
	}
	plan := must(halo.NewPlan(p, set.Links, path, spec))(t)
	x := open(halo.NewExchanger(plan, set.Compiler, f))(t)
	at := openStreams(t, p)
	done(t, nil, halo.Fill(f, func(rank int) halo.Row[T] {
		return func(values []T, at domain.Vec) {
			for i := range values {
				if values[i] = zero; p.Subdomains[rank].Box.Contains(at) {
					values[i] = owned(number(at))
				}
				at[0]++
			}
		}
	}))
	done(t, at, x.Exchange(at))
	for _, m := range plan.Messages {
		for _, part := range m.Parts {
			values := make([]T, part.Ghost.Points())
			done(t, nil, halo.ReadSubdomain(values, f, m.To, part.Ghost))
			i := 0
			eachPoint(part.Ghost, func(q domain.Vec) {
				if want := ghost(number(q)); values[i] != want {
					t.Fatalf("path %s, subdomain %d, ghost %v: got %v, want %v", path, m.To, q, values[i], want)
				}
				i++
			})
		}
	}
}

// callers returns memory of a device that halox did not allocate or, on a GPU, knows only by its address.
func callers(t *testing.T, d *streams.Device, bytes int64) *streams.Memory {
	t.Helper()
	if d.HostMemory {
		return must(d.WrapBytes(make([]byte, bytes)))(t)
	}
	theirs := must(d.Alloc(bytes))(t)
	t.Cleanup(func() { theirs.Close() })
	return must(d.WrapMemory(theirs.Address(), bytes))(t)
}

// An exchange does not write bytes between the rows of a caller's array, even if the ghosts of a face are
// contiguous.
func TestExchangeKeepsBytesBetweenRows(t *testing.T) {
	set := testdevices.Host(t, 2)
	for _, path := range paths {
		p := place(t, set, []int{4, 3, 6}, [3]bool{}, domain.Vec{1, 1, 2})
		spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{0, 0, 1}, Plus: domain.Vec{0, 0, 1}}}
		const pitch, gap = 6, -1.0
		var arrays []kernels.Array
		for rank, s := range p.Subdomains {
			l := must(domain.NewStridedLayout(s.Box, spec.Width, 8, 3*pitch, pitch, 3*pitch))(t)
			values := make([]float64, 5*3*pitch)
			for i := range values {
				values[i] = float64(rank)
				if i%pitch > 3 {
					values[i] = gap * float64(1+rank)
				}
			}
			bytes := unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 8*len(values))
			m := must(p.Devices[rank].WrapBytes(bytes))(t)
			arrays = append(arrays, kernels.Array{Data: m.All(), Layout: l})
			t.Cleanup(func() {
				for i, v := range values {
					if i%pitch > 3 && v != gap*float64(1+rank) {
						t.Errorf("path %s, subdomain %d: element %d between two rows is %v", path, rank, i, v)
						return
					}
				}
			})
		}
		f := must(halo.WrapField(p, spec, arrays...))(t)
		plan := must(halo.NewPlan(p, set.Links, path, spec))(t)
		if m := plan.Messages[0]; !m.Contiguous {
			t.Fatalf("message %+v is not contiguous", m)
		}
		x := must(halo.NewExchanger(plan, set.Compiler, f))(t)
		at := must(p.NewStreams())(t)
		done(t, nil, errors.Join(x.Exchange(at), at.Sync(time.Minute)))
	}
}

func TestWrapErrors(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8, 8}, [3]bool{}, domain.Vec{1, 1, 2})
	spec := star(3)
	array := func(device, rank int, width domain.Radius, bytes int64) kernels.Array {
		l := must(domain.NewLayout(p.Subdomains[rank].Box, width, 8))(t)
		m := must(set.Devices[device].WrapBytes(make([]byte, bytes)))(t)
		return kernels.Array{Data: m.All(), Layout: l}
	}
	good := array(0, 0, spec.Width, 1<<20)
	beyond, askew := array(1, 1, spec.Width, 1<<20), array(1, 1, spec.Width, 1<<20)
	beyond.Data.Offset = 8
	askew.Data = beyond.Data.Memory.Span(4, 1<<20-4)
	for name, second := range map[string]kernels.Array{
		"more than the memory has": beyond,
		"misaligned numbers":       askew,
		"no memory":                {Layout: good.Layout},
		"memory of another device": array(0, 1, spec.Width, 1<<20),
		"points of another rank":   array(1, 0, spec.Width, 1<<20),
		"other ghosts":             array(1, 1, domain.Radius{}, 1<<20),
		"too little memory":        array(1, 1, spec.Width, 64),
	} {
		if _, err := halo.WrapField(p, spec, good, second); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
	if _, err := halo.WrapField(p, spec, good); err == nil {
		t.Error("one array was accepted for two subdomains")
	}
	soa := spec
	soa.SoA, soa.Components = true, 2
	refuses(t, "wrap a field for each", errorOf(halo.WrapField(p, soa, good, good)), "wrap a field for each")
	if _, err := set.Devices[0].WrapStream(1); err == nil {
		t.Error("a CPU device accepted a CUDA stream")
	}
	if _, err := set.Devices[0].WrapMemory(1, 1); err == nil {
		t.Error("a CPU device accepted an address")
	}
	if _, err := domain.NewStridedLayout(p.Subdomains[0].Box, spec.Width, 8, 0, 10, 100); err == nil {
		t.Error("ghosts before the start of an array were accepted")
	}
}
