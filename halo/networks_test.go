//go:build linux

package halo_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nccl/ncclfake"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/streams"
)

// Exchanges of random cuts over each network, and accumulations, are those of geometry and of one process.
func TestProcessesOverNetworks(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for i, network := range testNetworks(t) {
			for j, tc := range []struct {
				program string
				ranks   []int
			}{{"geometry", []int{2, 3, 4}}, {"accumulate", []int{2, 3}}} {
				if !testdevices.Turn(i+j, 2, 2) {
					continue
				}
				for _, ranks := range testdevices.Some(1, tc.ranks) {
					t.Run(fmt.Sprintf("%s/%s/%d", network.name, tc.program, ranks), func(t *testing.T) {
						env := append(network.env, networkVariable+"="+network.name)
						in.Done(t, testmpi.Job{Program: tc.program, Ranks: ranks, Env: env})
					})
				}
			}
		}
	})
}

// Exchanges between real GPUs of two processes over each network that is to be had there: of NCCL also over its network, as
// between two hosts.
func TestProcessesOnGPUs(t *testing.T) {
	platform, err := streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
	if err != nil || len(platform.Devices()) < 2 {
		t.Skip("SKIPPED: no two GPUs: ", err)
	}
	done(t, nil, platform.Close())
	gpus := []string{"HALOX_TEST_GPUS=1", "HALOX_CUDA=" + os.Getenv("HALOX_CUDA"), ownVariable + "=1"}
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []testNetwork{
			{"mpi", gpus}, {"mpi-device", gpus}, {"nccl", gpus}, {"nccl", append(gpus, "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1")},
		} {
			t.Run(fmt.Sprintf("%s/%d", tc.name, len(tc.env)), func(t *testing.T) {
				r := in.Run(t, testmpi.Job{Program: "geometry", Ranks: 2, Env: append(tc.env, networkVariable+"="+tc.name)})
				if strings.Contains(r.Out, absent) {
					t.Skip("SKIPPED: ", r.Out)
				}
				r.Succeeds(t)
			})
		}
	})
}

// testNetwork is a network with the variables of programs that have it.
type testNetwork struct {
	name string
	env  []string
}

func testNetworks(t *testing.T) []testNetwork {
	gpus := testdevices.Environment(t, 2)
	return []testNetwork{{"mpi", gpus}, {"mpi-device", gpus}, {"nccl", append(gpus, "HALOX_NCCL="+ncclfake.Build(t))}}
}

// What trials of networks find is taken from then on. A network that is named has to be right, whatever its library says.
func TestProcessesTryNetworks(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		gpus := testdevices.Environment(t, 2)
		for _, tc := range []struct{ name, nccl, found string }{
			{"with NCCL", ncclfake.Build(t), `rank 1: network nccl of "NCCL 2.27.5 over FAKE/SOCKET": , measured true`},
			{"without", "/nowhere/libnccl.so.2", "no NCCL library found: /nowhere/libnccl.so.2"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				env := append(gpus, "HALOX_CACHE="+t.TempDir(), "HALOX_NCCL="+tc.nccl)
				r := in.Done(t, testmpi.Job{Program: "networks", Ranks: 2, Env: env})
				for _, want := range []string{"rank 1: network mpi of ", "does not say that it takes device memory", "rank 1 takes mpi-device", tc.found} {
					if !strings.Contains(r.Out, want) {
						t.Errorf("it does not say %q:\n%s", want, r.Out)
					}
				}
			})
		}
	})
}
