package solvers

import (
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// spinSource keeps the threads of a launch busy for a time.
const spinSource = `
struct Spin { i64 ns; };
__device__ i64 now() {
	i64 t;
	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}
extern "C" __global__ void spin(const __grid_constant__ Spin s) {
	const i64 end = now() + s.ns;
	while (now() < end) {}
}
`

// Steps whose blocks wait for each other, on GPUs of which another kernel takes all places, run when it has
// ended, to the bits that they have alone, or end with an error that says who waited: they never hang.
func TestStepsBesideAnotherKernel(t *testing.T) {
	set := testdevices.GPUs(t)
	n := min(4, len(set.Devices))
	p := problem(t, []int{96, 96, 24 * n}, kernels.Float64, "dddddd")
	const limit = 2 * time.Second
	for _, scheme := range []Scheme{Resident, Ranks, Fused} {
		for name, busy := range map[string]time.Duration{"for less than the limit": limit / 4, "for longer": 3 * limit} {
			t.Run(string(scheme)+"/"+name, func(t *testing.T) {
				alone := prepare(t, set, p, how{path: p2p.Direct, parts: domain.Vec{1, 1, n}})
				beside := prepare(t, set, p, how{path: p2p.Direct, parts: domain.Vec{1, 1, n}})
				options := Options{Scheme: scheme, Steps: 2000, CheckEvery: 500, Limit: limit}
				if _, err := alone.Run(t.Context(), options); err != nil { // which compiles, too
					t.Fatal(err)
				}
				occupy(t, set, busy)
				begin := time.Now()
				_, err := beside.Run(t.Context(), options)
				took := time.Since(begin)
				t.Logf("after %v: %v", took, err)
				switch {
				case took > busy+5*limit:
					t.Errorf("it took %v", took)
				case err == nil:
					compare(t, p.Grid, read(t, beside), read(t, alone))
				case busy < limit || !strings.Contains(err.Error(), "waited") && !strings.Contains(err.Error(), "cuda "):
					t.Error(err)
				}
			})
		}
	}
}

// occupy has the first of the GPUs busy with threads enough for all of its places. The test ends after them.
func occupy(t *testing.T, set *testdevices.Set, busy time.Duration) {
	t.Helper()
	d := set.Devices[0]
	found, err := set.Compiler.Functions(d, kernels.Source{Name: "spin.cu", Text: spinSource}, "spin")
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernels.Launch(d, kernels.LaunchSpec[struct{ ns int64 }]{
		Name: "spin", Function: found[0], Grid: [3]int{2 * d.Cores, 1, 1}, Block: [3]int{1024, 1, 1}, Argument: struct{ ns int64 }{int64(busy)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewStream(streams.Normal)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Launch(k); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Sync(busy + 10*time.Second); err != nil {
			t.Error(err)
		}
		s.Close()
		k.Close()
	})
}
