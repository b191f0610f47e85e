package halo_test

import (
	"testing"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
)

// Messages within a host and between hosts are measured between the first processes that can be.
func TestFirstPair(t *testing.T) {
	for _, tc := range []struct {
		name           string
		nodes          []int
		within, across [2]int // equal where there is none
	}{
		{"alone", []int{0}, [2]int{}, [2]int{}},
		{"one host", []int{0, 0, 0}, [2]int{0, 1}, [2]int{}},
		{"one process a host", []int{0, 1, 2}, [2]int{}, [2]int{0, 1}},
		{"hosts in turns", []int{0, 1, 0, 1}, [2]int{0, 2}, [2]int{0, 1}},
		{"one host after the other", []int{0, 0, 1, 1}, [2]int{0, 1}, [2]int{0, 2}},
		{"the last has two", []int{0, 1, 2, 2}, [2]int{2, 3}, [2]int{0, 1}},
	} {
		for alike, want := range map[bool][2]int{true: tc.within, false: tc.across} {
			from, to, found := halo.FirstPair(tc.nodes, alike)
			if [2]int{from, to} != want || found != (want[0] != want[1]) {
				t.Errorf("%s, on one host %t: %d and %d, %t, want %v", tc.name, alike, from, to, found, want)
			}
		}
	}
}

func TestProcessModel(t *testing.T) {
	curve := func(us time.Duration) *halo.ProcessCurve {
		return &halo.ProcessCurve{Curve: p2p.NewCurve(p2p.Sample{Bytes: 1000, Time: us * time.Microsecond}, p2p.Sample{Bytes: 2000, Time: 2 * us * time.Microsecond})}
	}
	m := &halo.ProcessModel{Nodes: []int{0, 0, 1}, Within: curve(10), Across: curve(50)}
	for _, tc := range []struct {
		from, to int
		bytes    int64
		want     time.Duration
	}{{0, 1, 1000, 10 * time.Microsecond}, {1, 0, 1500, 15 * time.Microsecond}, {0, 2, 2000, 100 * time.Microsecond}, {2, 1, 10, 50 * time.Microsecond}} {
		if got, ok := m.Time(tc.from, tc.to, tc.bytes); got != tc.want || !ok {
			t.Errorf("%d bytes from %d to %d: %v, %t, want %v", tc.bytes, tc.from, tc.to, got, ok, tc.want)
		}
	}
	m.Across = nil
	if got, ok := m.Time(0, 2, 8); ok {
		t.Errorf("between hosts where nobody measured: %v", got)
	}
	if got, ok := (*halo.ProcessModel)(nil).Time(0, 1, 8); ok {
		t.Errorf("without a model: %v", got)
	}
}
