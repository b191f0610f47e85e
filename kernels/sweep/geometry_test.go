package sweep

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Groups are of arrays that lie alike within words of 16 bytes, also where arrays are parts of one memory.
func TestGroupsOfPartsOfAMemory(t *testing.T) {
	devices := test.Must(streams.HostPlatform(1).Open())(t)
	defer streams.CloseAll(devices)
	s := linearSamples(t)[1] // float64
	n := test.Must(newPlan(s.point, s.accesses))(t)
	owned := domain.Box{Hi: domain.Vec{16, 16, 1}}
	l := test.Must(domain.NewLayout(owned, domain.UniformRadius(2, 1), 8))(t)
	m := test.Must(devices[0].Alloc(2*l.Bytes() + 16))(t)
	defer m.Close()
	for gap, want := range map[int64]bool{0: true, 8: false, 16: true} {
		arrays := []kernels.Array{{Data: m.Span(0, l.Bytes()), Layout: l}, {Data: m.Span(l.Bytes()+gap, l.Bytes()), Layout: l}}
		if got := n.grouped(arrays, owned); got != want {
			t.Errorf("%d bytes between them: in groups %t", gap, got)
		}
	}
}

// Threads have no more points than a RunningSum of sums.cuh has room for, in boxes of any size.
func TestThreadsHaveFewTerms(t *testing.T) {
	const most = 1 << 11
	for _, s := range append(compiledSamples(t), linearSamples(t)...) {
		f := test.Must(newPlan(s.point, s.accesses))(t).form()
		for _, size := range []domain.Vec{{9, 9, 1 << 27}, {1 << 16, 1 << 16, 4}, {512, 512, 512}, {1 << 28, 1, 9}} {
			for _, shape := range f.shapes {
				if _, layers, ok := f.grid(shape, int64(size[0]), size); ok && layers*f.rows*16 > most {
					t.Errorf("%s: columns of %d layers and %d rows", s.point.Name, layers, f.rows)
				}
			}
			b := domain.Box{Hi: size}
			k := launchPlan{arrays: []kernels.Array{{Layout: test.Must(domain.NewLayout(b, domain.Radius{}, 1))(t)}}}
			k.small([]domain.Box{b}, 1)
			if each := ceil(b.Points(), int64(k.grid[0]*blockSize)); each*16 > most {
				t.Errorf("%d groups a thread", each)
			}
		}
	}
}
