//go:build unix

package halo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Programs of several processes succeed on all of them.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 0, 2)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			program string
			ranks   []int // one of them unless tests are long; geometry runs all
		}{
			{"geometry", []int{2, 3, 4}},
			{"different plans", []int{3}},
			{"one cannot", []int{2}},
			{"one errs", []int{3}},
			{"own points", []int{2}},
			{"session", []int{3, 2}},
			{"accumulate", []int{4, 2}},
			{"measure", []int{3}},
			{"snapshots", []int{2, 3}},
		} {
			few := 1
			if tc.program == "geometry" {
				few = 2
			}
			for _, ranks := range testdevices.Some(few, tc.ranks) {
				t.Run(fmt.Sprintf("%s/%d", tc.program, ranks), func(t *testing.T) {
					in.Done(t, testmpi.Job{Program: tc.program, Ranks: ranks})
				})
			}
		}
	})
}

// A process that does not take part in an exchange ends the others, which name the message.
func TestProcessesNameWhoHangs(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		in.Fails(t, testmpi.Job{Program: "a rank hangs", Ranks: 3},
			"mpi: the message of subdomain 2 to subdomain ", "rank 2 on host ", "waited too long for ")
	})
}

// Every device gets one subdomain, and those of a host form one box if all hosts have equally many devices.
func TestHostsAreCutFirst(t *testing.T) {
	grid := must(domain.NewGrid([]int{48, 24, 24}, nil))(t)
	for _, tc := range []struct {
		name    string
		byHost  []int
		parts   domain.Vec
		isNoBox bool
	}{
		{"one host", []int{4}, domain.Vec{}, false},
		{"two hosts", []int{4, 4}, domain.Vec{}, false},
		{"three hosts", []int{2, 2, 2}, domain.Vec{}, false},
		{"unequal hosts", []int{3, 1}, domain.Vec{}, true},
		{"given parts", []int{2, 2}, domain.Vec{4, 1, 1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := halo.Cutting{Fields: []halo.Spec{star(3)}, Parts: tc.parts[:]}
			parts, seatOf, err := halo.PartsAmong(grid, c, tc.byHost)
			test.Check(t, err)
			cut := must(domain.Decompose(grid, parts))(t)
			points, boxes := make([]int64, len(tc.byHost)), make([]domain.Box, len(tc.byHost))
			var seats []int
			for _, s := range cut.Subdomains {
				seat := seatOf(s)
				seats = append(seats, seat)
				host := 0
				for first := tc.byHost[0]; seat >= first; first += tc.byHost[host] {
					host++
				}
				boxes[host] = around(boxes[host], s.Box)
				points[host] += s.Box.Points()
			}
			slices.Sort(seats)
			for i, seat := range seats {
				if i != seat {
					t.Fatalf("seats %v", seats)
				}
			}
			for host, box := range boxes {
				if !tc.isNoBox && box.Points() != points[host] {
					t.Errorf("host %d: %d points in bounding box %v", host, points[host], box)
				}
			}
		})
	}
	if _, _, err := halo.PartsAmong(grid, halo.Cutting{Parts: []int{3}}, []int{2, 2}); err == nil || !strings.Contains(err.Error(), "is for 3 devices, the processes have 4") {
		t.Errorf("3 parts for 4 devices: %v", err)
	}
}

// around returns the smallest box that contains both.
func around(a, b domain.Box) domain.Box {
	if a.Empty() {
		return b
	}
	for i := range a.Lo {
		a.Lo[i], a.Hi[i] = min(a.Lo[i], b.Lo[i]), max(a.Hi[i], b.Hi[i])
	}
	return a
}

// Processes of a host share its GPUs, in disjoint parts.
func TestProcessesShareDevices(t *testing.T) {
	gpu := streams.Info{}
	gpu.Noun = "GPU"
	core := streams.Info{}
	core.Noun, core.HostCores = "CPU device", true
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	one := &mpi.Processes{Hosts: []string{"b"}}
	for _, tc := range []struct {
		name         string
		info         streams.Info
		want         halo.Devices
		ids          []int
		index, count int
		got          []int
		err          string
	}{
		{"alone on its host", gpu, halo.Devices{}, all, 0, 1, all, ""},
		{"the first of two", gpu, halo.Devices{}, all, 0, 2, all[:4], ""},
		{"the last of two", gpu, halo.Devices{}, all, 1, 2, all[4:], ""},
		{"one more", gpu, halo.Devices{}, all, 2, 3, all[5:], ""},
		{"as many as requested", gpu, halo.Devices{Count: 2}, all, 1, 2, all[4:6], ""},
		{"more than its share", gpu, halo.Devices{Count: 5}, all, 1, 2, nil, "must be at most 4, the share of this process of the 8 GPUs of host b (2 processes), got 5"},
		{"more processes than GPUs", gpu, halo.Devices{}, all[:2], 1, 3, nil, "host b has 2 GPUs for 3 processes"},
		{"cores", core, halo.Devices{}, all, 1, 3, all[:2], ""},
		{"more processes than cores", core, halo.Devices{}, all[:2], 1, 3, all[:1], ""},
		{"CPU devices as requested", core, halo.Devices{Count: 8}, all, 1, 3, all, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Processes = one
			got, err := halo.ShareOf(tc.want, tc.info, tc.ids, tc.index, tc.count)
			if tc.err != "" {
				test.Says(t, err, tc.err)
				return
			}
			if err != nil || !slices.Equal(got, tc.got) {
				t.Errorf("got %v, %v; want %v", got, err, tc.got)
			}
		})
	}
}
