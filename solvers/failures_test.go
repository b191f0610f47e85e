package solvers

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

var soak = flag.Duration("soak", 2*time.Second, "how long TestSoak takes for each backend")

// disturbing returns the set with a compiler that disturbs the steps of its first device.
func disturbing(t *testing.T, set *testdevices.Set, what ...string) *testdevices.Set {
	t.Helper()
	other, err := set.Disturbed(func(d *streams.Device) []string {
		if d == set.Devices[0] {
			return what
		}
		return nil
	})
	succeeds(t, err)
	return other
}

// Problems of all kinds and sizes are bitwise identical between a scheme with whole steps in kernels and one
// without, while the first GPU pauses at random.
func TestSoak(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
		disturbed := disturbing(t, set, "PAUSES")
		runs, steps := 0, int64(0)
		for end := time.Now().Add(*soak); time.Now().Before(end) && !t.Failed(); runs++ {
			p, h, o := soakCase(t, random, set)
			name := fmt.Sprintf("size=%v/periodic=%v/type=%s/group=%d/%v/steps=%d/every=%d", p.Grid.Size, p.Grid.Periodic, p.Element, p.Group, h, o.Steps, o.CheckEvery)
			t.Run(name, func(t *testing.T) { soaked(t, set, disturbed, p, h, o) })
			steps += o.Steps
		}
		t.Logf("%d runs, %d steps", runs, steps)
	})
}

// soakCase returns a random problem, and a way to solve it.
func soakCase(t *testing.T, random *rand.Rand, set *testdevices.Set) (p *Problem, h how, o scheme.Options) {
	t.Helper()
	gpu, dims := set.Devices[0].Backend == streams.CUDA, 2+random.IntN(2)
	least, most := 8, map[bool][]int{false: {60, 14}, true: {1500, 110}}[gpu][dims-2]
	large := gpu && random.IntN(8) == 0 // of which shared memory holds all, a part, or nothing
	if large {
		least, most = []int{1900, 150}[dims-2], []int{500, 30}[dims-2]
	}
	size, walls := []int{}, ""
	for range dims {
		size = append(size, least+random.IntN(most))
		walls += []string{"dd", "dn", "nn", "pp"}[random.IntN(4)]
	}
	p = problem(t, size, []domain.Element{domain.Float64, domain.Float32}[random.IntN(2)], walls)
	p.Group = []int{1, 1, 2, 3, 4}[random.IntN(5)]
	o = scheme.Options{Steps: 50 + random.Int64N(100), CheckEvery: 1 + random.Int64N(60), History: true}
	if gpu && !large {
		o.Steps *= 20
		o.CheckEvery *= 10
	}
	h = how{scheme: []scheme.Scheme{scheme.Resident, scheme.Resident, scheme.Fused, scheme.Blocked}[random.IntN(4)], path: p2p.Direct, parts: domain.Vec{1, 1, 1}}
	for range random.IntN(3) {
		wider := h.parts
		if wider[random.IntN(dims)]++; int(wider.Product()) <= len(set.Devices) {
			h.parts = wider
		}
	}
	return p, h, o
}

func soaked(t *testing.T, set, disturbed *testdevices.Set, p *Problem, h how, o scheme.Options) {
	if !fits(set, p, h.parts) {
		t.Skip("SKIPPED: subdomains own too few layers")
	}
	plain, want := solve(t, set, inGroupsOf(p, 1), how{scheme: scheme.TwoStream, order: scheme.LeftRight, path: p2p.Peer, parts: h.parts}, o)
	s := prepare(t, disturbed, p, h)
	got, err := s.Run(t.Context(), h.options(o))
	if p.Group > 1 && errors.Is(err, scheme.ErrUnsuited) {
		t.Skip("SKIPPED: ", err)
	}
	succeeds(t, err)
	compare(t, p.Grid, read(t, s), read(t, plain))
	for i, n := range want.History {
		if got, want := got.History[i].Norms[0], n.Norms[0]; got.MaxChange != want.MaxChange || got.Max != want.Max {
			t.Errorf("norms %+v, want %+v", got, want)
		}
	}
}

// failing is the environment variable of the process whose GPU fails.
const failing = "HALOX_TEST_A_GPU_FAILS"

// failures are the schemes whose kernels wait for other GPUs.
var failures = []scheme.Scheme{scheme.Resident, scheme.Fused, scheme.Blocked}

// If a GPU fails during whole steps or an exchange, the run soon ends with an error: the others wait no
// longer than their limit. The process loses the GPU, so the test uses a separate process.
func TestFailingGPU(t *testing.T) {
	if name := os.Getenv(failing); name != "" {
		runOnAFailingGPU(t, testdevices.GPUs(t), scheme.Scheme(name), 96, 3001)
		return
	}
	set := testdevices.GPUs(t)
	if len(set.Devices) < 2 {
		t.Skip("SKIPPED: needs two GPUs")
	}
	for _, name := range failures {
		t.Run(string(name), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestFailingGPU$", "-test.v")
			cmd.Env = append(os.Environ(), failing+"="+string(name))
			out, _ := cmd.CombinedOutput() // its devices cannot be closed
			t.Logf("%s", out)
			if !bytes.Contains(out, []byte("the run ended: ")) {
				t.Error("the run of the other process did not end with an error")
			}
		})
	}
}

// On emulated GPUs a failing GPU does not affect others: the run ends as soon as it is known to be lost.
func TestFailingEmulatedGPU(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	for _, name := range failures {
		t.Run(string(name), func(t *testing.T) { runOnAFailingGPU(t, testdevices.CPU(t, 2), name, 16, 31) })
	}
}

// If several GPUs fail, the error names them all.
func TestGPUsThatFailTogether(t *testing.T) {
	set := testdevices.CPU(t, 2)
	dying := must(set.Disturbed(func(*streams.Device) []string { return []string{"DIES_AT=31"} }))(t)
	s := prepare(t, dying, problem(t, []int{16, 16, 12}, domain.Float64, "dddddd"), how{path: p2p.Direct, parts: domain.Vec{1, 1, 2}})
	_, err := s.Run(t.Context(), scheme.Options{Scheme: scheme.Fused, Steps: 1 << 40, CheckEvery: 1 << 40, Limit: testLimit})
	if err == nil || !strings.Contains(err.Error(), "cuda 0") || !strings.Contains(err.Error(), "cuda 1") {
		t.Error(err)
	}
}

// runOnAFailingGPU runs steps on squares of points x points, 24 for each GPU, of which the first fails.
func runOnAFailingGPU(t *testing.T, set *testdevices.Set, name scheme.Scheme, points, at int) {
	n := min(4, len(set.Devices))
	p := problem(t, []int{points, points, 24 * n}, domain.Float64, "dddddd")
	dying := disturbing(t, set, fmt.Sprintf("DIES_AT=%d", at))
	run := func(steps int64, limit time.Duration) error {
		s := prepare(t, dying, p, how{path: p2p.Direct, parts: domain.Vec{1, 1, n}})
		_, err := s.Run(t.Context(), scheme.Options{Scheme: name, Steps: steps, CheckEvery: steps, Limit: limit})
		return err
	}
	if err := run(4, testLimit); err != nil { // compiles before the timed run
		t.Fatal(err)
	}
	begin := time.Now()
	err := run(1<<40, 2*time.Second)
	took := time.Since(begin)
	if err == nil || took > time.Minute || !(strings.Contains(err.Error(), "timed out") || strings.Contains(err.Error(), "cuda 0")) {
		t.Fatalf("after %v: %v", took, err)
	}
	fmt.Printf("the run ended: after %v: %v\n", took, err)
}

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

// Steps whose blocks wait for each other, on GPUs that another kernel occupies completely, run after it has
// ended, with bitwise identical results, or end with an error that names the waiting device: they never hang.
func TestStepsWithAnotherKernel(t *testing.T) {
	set := testdevices.GPUs(t)
	n := min(4, len(set.Devices))
	p := problem(t, []int{96, 96, 24 * n}, domain.Float64, "dddddd")
	const limit = 2 * time.Second
	for _, name := range []scheme.Scheme{scheme.Resident, scheme.Ranks, scheme.Fused} {
		for long, busy := range map[string]time.Duration{"for less than the limit": limit / 4, "for longer": 3 * limit} {
			t.Run(string(name)+"/"+long, func(t *testing.T) {
				alone := prepare(t, set, p, how{path: p2p.Direct, parts: domain.Vec{1, 1, n}})
				beside := prepare(t, set, p, how{path: p2p.Direct, parts: domain.Vec{1, 1, n}})
				options := scheme.Options{Scheme: name, Steps: 2000, CheckEvery: 500, Limit: limit}
				if _, err := alone.Run(t.Context(), options); err != nil { // compiles too
					t.Fatal(err)
				}
				occupy(t, set, busy)
				begin := time.Now()
				_, err := beside.Run(t.Context(), options)
				took := time.Since(begin)
				t.Logf("after %v: %v", took, err)
				switch {
				case took > busy+30*limit:
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

// occupy keeps the first GPU completely busy. The test ends after that.
func occupy(t *testing.T, set *testdevices.Set, busy time.Duration) {
	t.Helper()
	d := set.Devices[0]
	found := must(set.Compiler.Functions(d, kernels.Source{Name: "spin.cu", Text: spinSource}, "spin"))(t)
	k, err := kernels.Launch(d, kernels.LaunchSpec[struct{ ns int64 }]{
		Name: "spin", Function: found[0], Grid: [3]int{2 * d.Cores, 1, 1}, Block: [3]int{1024, 1, 1}, Argument: struct{ ns int64 }{int64(busy)},
	})
	succeeds(t, err)
	s := must(d.NewStream(streams.Normal))(t)
	succeeds(t, s.Launch(k))
	t.Cleanup(func() {
		succeeds(t, s.Sync(busy+10*time.Second))
		s.Close()
		k.Close()
	})
}
