package halo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

func TestOpenTeam(t *testing.T) {
	for n, says := range map[int]string{1: "1 host device", 3: "3 host devices"} {
		team, err := halo.OpenTeam(streams.Host, n)
		if err != nil {
			t.Fatal(err)
		}
		if team.String() != says {
			t.Errorf("%v, not %s", team, says)
		}
		if err := team.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := halo.OpenTeam(streams.Host, -1); err == nil || !strings.Contains(err.Error(), "-1 devices were asked for") {
		t.Error(err)
	}
	t.Setenv("HALOX_CUDA", "/nowhere/libcuda.so")
	if _, err := halo.OpenTeam(streams.CUDA, 1); err == nil {
		t.Error("GPUs without a driver")
	}
	team, err := halo.OpenTeam("", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	if team.Devices[0].Backend != streams.Host {
		t.Errorf("%v without a driver", team)
	}
}

// The boundary region lies where there are neighbours only, and with the interior
// makes up what a subdomain owns; kernels are made for boxes that hold points.
func TestSplitOfPlacement(t *testing.T) {
	team, err := halo.OpenTeam(streams.Host, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	layers := domain.Radius{Minus: domain.Vec{1, 1}, Plus: domain.Vec{0, 2}}
	place, err := team.Place([]int{6, 9}, [3]bool{}, domain.UniformRadius(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{ // three parts along y, walls on both sides of x
		"[0,6)x[0,1)x[0,1) + [[0,6)x[1,3)x[0,1)]",
		"[0,6)x[4,4)x[0,1) + [[0,6)x[3,4)x[0,1) [0,6)x[4,6)x[0,1)]",
		"[0,6)x[7,9)x[0,1) + [[0,6)x[6,7)x[0,1)]",
	}
	for rank, says := range want {
		interior, boundary := place.Split(rank, layers)
		if got := fmt.Sprint(interior, " + ", boundary); got != says {
			t.Errorf("subdomain %d: %s, not %s", rank, got, says)
		}
	}
	boundary, interior, err := place.Kernels(layers, func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
		return place.Devices[rank].NewKernel(streams.KernelSpec{Name: fmt.Sprint(boxes), Run: func() {}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if boundary[1] == nil || interior[0] == nil || interior[1] != nil {
		t.Errorf("boundary %v, interior %v", boundary, interior)
	}
	at, err := place.NewStreams()
	if err != nil {
		t.Fatal(err)
	}
	if err := at.Launch(interior); err != nil {
		t.Error(err)
	}
	if err := at.Launch(interior[:1]); err == nil || !strings.Contains(err.Error(), "1 kernels for 3 subdomains") {
		t.Error(err)
	}
	if err := at.Close(); err != nil {
		t.Error(err)
	}
}
