//go:build linux && cgo

package streams

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

// Boxes are copied before and after the first and the last device, which are one where there is one,
// have access to each other.
func TestCopyBoxCUDA(t *testing.T) { onCUDA(t, copyBoxesCUDA) }

func copyBoxesCUDA(t *testing.T, devices []*Device) {
	first, last := devices[0], devices[len(devices)-1]
	t.Run("access=false", func(t *testing.T) { copyBoxes(t, devices) })
	t.Run("access=true", func(t *testing.T) {
		if open, err := first.CanAccess(last); err != nil || !open || first == last {
			t.Skipf("SKIPPED: no access from %v to %v: %v", first, last, err)
		}
		test.Check(t, first.EnablePeer(last), last.EnablePeer(first))
		copyBoxes(t, devices)
	})
}

// Each box takes the driver's leanest call for it, and one.
func TestCopyBoxCallsTheDriver(t *testing.T) {
	r := newRig(t, 2)
	d, fake := r.devices[0], r.fake
	s := test.Must(d.NewStream(Normal))(t)
	const limit, size = 1 << 20, 4 << 20 // the fake's pitch
	a, b := test.Must(d.Alloc(size))(t), test.Must(d.Alloc(size))(t)
	far := test.Must(r.devices[1].Alloc(size))(t)
	host := test.Must(d.AllocPinned(size))(t)
	on := func(m *Memory, pitch, plane int64) Pitched { return Pitched{m.All(), 0, pitch, plane} }
	for _, tc := range []struct {
		name                 string
		dst, src             Pitched
		width, height, depth int64
		call                 string // or none
		says                 string
	}{
		{"3-D", on(a, 16, 64), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"2-D", on(a, 16, 0), on(b, 8, 0), 8, 3, 1, "cuMemcpy3DAsync", ""},
		{"3-D to a peer", on(far, 16, 64), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DPeerAsync", ""},
		{"3-D to pinned memory", on(host, 16, 64), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"no gaps", on(a, 8, 24), on(b, 8, 24), 8, 3, 2, "cuMemcpyDtoDAsync", ""},
		{"no gaps, to a peer", on(far, 8, 24), on(b, 8, 24), 8, 3, 2, "cuMemcpyPeerAsync", ""},
		{"no gaps, to pinned memory", on(host, 8, 24), on(b, 8, 24), 8, 3, 2, "cuMemcpyDtoHAsync", ""},
		{"one row beyond the limit", on(a, 0, 0), on(b, 0, 0), limit + 1, 1, 1, "cuMemcpyDtoDAsync", ""},
		{"a pitch at the limit", on(a, limit, 0), on(b, 8, 0), 8, 3, 1, "cuMemcpy3DAsync", ""},
		{"a pitch beyond the limit", on(a, limit+1, 0), on(b, 8, 0), 8, 3, 1, "",
			"no single copy does it: rows lie 1048577 bytes apart, the device takes 1048576 at most"},
		{"a pitch of the source beyond the limit", on(host, 8, 0), on(b, 2*limit, 0), 8, 2, 1, "",
			"no single copy does it: rows lie 2097152 bytes apart, the device takes 1048576 at most"},
		{"planes beyond the limit", on(a, 16, 2*limit), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"planes without gaps beyond the limit", on(a, 8, 2*limit), on(b, 8, 32), 8, 3, 2, "cuMemcpy3DAsync", ""},
		{"planes no whole number of rows apart", on(a, 24, 80), on(b, 8, 32), 8, 3, 2, "",
			"no single copy does it: planes lie 80 bytes apart, which is no whole number of rows of 24"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := copyCalls(fake)
			err := s.CopyBox(tc.dst, tc.src, tc.width, tc.height, tc.depth)
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, ErrUnsuited) || !strings.HasSuffix(err.Error(), tc.says)) {
				t.Errorf("got %v", err)
			}
			for call, n := range copyCalls(fake) {
				if made := n - before[call]; made > 1 || (made == 1) != (call == tc.call) {
					t.Errorf("%d calls of %s", made, call)
				}
			}
		})
	}
}

// copyCalls counts the calls of all copies.
func copyCalls(fake *cudafake.Fake) map[string]int {
	calls := map[string]int{}
	for _, name := range []string{"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemcpyPeerAsync",
		"cuMemcpy3DAsync", "cuMemcpy3DPeerAsync"} {
		calls[name] = fake.Calls(name)
	}
	return calls
}
