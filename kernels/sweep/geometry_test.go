package sweep

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Groups are of arrays that lie alike within words of 16 bytes, also where arrays are parts of one memory.
func TestGroupsOfPartsOfAMemory(t *testing.T) {
	devices := must(streams.HostPlatform(1).Open())(t)
	defer streams.CloseAll(devices)
	s := linearSamples(t)[1] // float64
	n := must(newPlan(s.point, s.accesses))(t)
	owned := domain.Box{Hi: domain.Vec{16, 16, 1}}
	l := must(domain.NewLayout(owned, domain.UniformRadius(2, 1), 8))(t)
	m := must(devices[0].Alloc(2*l.Bytes() + 16))(t)
	defer m.Close()
	for gap, want := range map[int64]bool{0: true, 8: false, 16: true} {
		arrays := []kernels.Array{{Data: m.Span(0, l.Bytes()), Layout: l}, {Data: m.Span(l.Bytes()+gap, l.Bytes()), Layout: l}}
		if got := n.grouped(arrays, owned); got != want {
			t.Errorf("%d bytes between them: in groups %t", gap, got)
		}
	}
}
