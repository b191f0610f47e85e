//go:build linux && cgo

package streams

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda"
)

// A driver without memory says so in a way that can be told apart, and pinned memory counts as the host's.
func TestCUDAOutOfMemory(t *testing.T) {
	r := newRig(t, 2)
	d := r.devices[0]
	for call, alloc := range map[string]func(int64) (*Memory, error){"cuMemAlloc": d.Alloc, "cuMemHostAlloc": d.AllocPinned} {
		r.fake.Fail(call, int(cuda.CodeOutOfMemory), 0, 1)
		if _, err := alloc(64); !errors.Is(err, ErrOutOfMemory) || !errors.Is(err, cuda.CodeOutOfMemory) {
			t.Errorf("%s: %v", call, err)
		}
	}
	calls := r.fake.Calls("cuMemHostAlloc")
	if _, err := d.AllocPinned(1 << 62); !errors.Is(err, ErrOutOfMemory) || r.fake.Calls("cuMemHostAlloc") != calls {
		t.Errorf("the driver was asked for 4 EiB of pinned memory: %v", err)
	}
	if now := d.Held(); now != (Held{}) {
		t.Errorf("held: %+v", now)
	}
	check(t, d.Err())

	m, host := must(d.Alloc(1<<20))(t), must(d.AllocPinned(1<<10))(t)
	if now := d.Held(); now != (Held{Memory: 1 << 20, Pinned: 1 << 10}) {
		t.Errorf("held: %+v", now)
	}
	want := func(memory, pinned int64) []Demand {
		return []Demand{
			{Device: d, Held: Held{Memory: memory}}, {Device: d, Held: Held{Memory: memory}},
			{Device: r.devices[1], Held: Held{Memory: 5 << 30, Pinned: pinned}},
		}
	}
	check(t, Fit(want((5<<30-1<<20)/2, 1<<20)))
	for says, demand := range map[string][]Demand{
		"device cuda 0: make room: out of memory: 5367660546 B are needed, and 5367660544 B of 6 GiB are free": want((5<<30-1<<20)/2+1, 0),
		"out of memory on the host: 1 EiB are needed, and ":                                                    want(1, 1<<60),
	} {
		if err := Fit(demand); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
	check(t, m.Close(), host.Close())
}
