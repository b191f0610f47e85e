//go:build linux

package halo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/nccl/ncclfake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/internal/testnet"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Exchanges of random decompositions over each network, and accumulations, agree with geometry and with one
// process.
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

// Exchanges between real GPUs of two processes over each available network; for NCCL also over its network
// transport, as between two hosts.
func TestProcessesOnGPUs(t *testing.T) {
	platform, err := streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
	if err != nil || len(platform.Devices()) < 2 {
		t.Skip("SKIPPED: no two GPUs: ", err)
	}
	done(t, nil, platform.Close())
	shared := []string{"HALOX_TEST_GPUS=1", "HALOX_CUDA=" + os.Getenv("HALOX_CUDA")} // by both processes
	gpus := append(slices.Clip(shared), ownVariable+"=1")
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []testNetwork{
			{"ipc", gpus}, {"ipc", shared}, {"ipc", append(slices.Clip(shared), "CUDA_VISIBLE_DEVICES=0")}, {"mpi", gpus}, {"mpi-device", gpus}, {"nccl", gpus}, {"nccl", append(gpus, "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1")},
		} {
			t.Run(fmt.Sprintf("%s/%s", tc.name, strings.Join(tc.env[2:], " ")), func(t *testing.T) {
				r := in.Run(t, testmpi.Job{Program: "geometry", Ranks: 2, Env: append(tc.env, networkVariable+"="+tc.name)})
				if strings.Contains(r.Out, absent) {
					t.Skip("SKIPPED: ", r.Out)
				}
				r.Succeeds(t)
			})
		}
	})
}

// testNetwork is a network with the variables of programs that use it.
type testNetwork struct {
	name string
	env  []string
}

func testNetworks(t *testing.T) []testNetwork {
	gpus := testdevices.Environment(t, 2)
	return []testNetwork{{"ipc", nil}, {"ipc", gpus}, {"mpi", gpus}, {"mpi-device", gpus}, {"nccl", append(gpus, "HALOX_NCCL="+ncclfake.Build(t))}}
}

// Networks found by trials are used afterwards. A named network must work, whatever its library reports.
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
				for _, want := range []string{"rank 1: network mpi of ", "does not report support for device memory", "rank 1 takes mpi-device", tc.found} {
					if !strings.Contains(r.Out, want) {
						t.Errorf("%q is missing:\n%s", want, r.Out)
					}
				}
			})
		}
	})
}

// Where processes cannot map each other's memory, or nothing arrives there, a session says so and uses MPI. A session that
// names network ipc fails.
func TestProcessesWithoutIPC(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, flag := range testdevices.Some(1, []string{cudafake.LyingIPC, cudafake.WithoutIPC}) {
			env := append(testdevices.Environment(t, 2, flag), "HALOX_CACHE="+t.TempDir())
			in.Done(t, testmpi.Job{Program: "without ipc", Ranks: 2, Env: env})
		}
	})
}

// withoutIPC opens sessions that cannot use network ipc.
func withoutIPC(p processes) error {
	ctx := context.Background()
	done(here, nil, errors.Join(p.devices[0].Close(), p.devices[1].Close()))
	_, err := halo.Open(ctx, halo.Devices{Backend: "cuda", Count: 1, Processes: p.Processes, Network: mpi.IPC})
	if err == nil || !strings.Contains(err.Error(), "Devices.Network: ipc: ") {
		return fmt.Errorf("network ipc is used: %w", err)
	}
	s := must(halo.Open(ctx, halo.Devices{Backend: "cuda", Count: 1, Processes: p.Processes}))(here)
	used := s.UsedNetworks()
	if len(used) != 1 || used[0].Network != mpi.Pieces || !strings.Contains(s.Note, "do not map each other's memory, and use network mpi: ") {
		return fmt.Errorf("networks %+v, note %q", used, s.Note)
	}
	return s.Close()
}

// triesNetworks makes sessions try all networks, name one, and load the trials.
func triesNetworks(p processes) error {
	ctx := context.Background()
	done(here, nil, errors.Join(p.devices[0].Close(), p.devices[1].Close()))
	open := func(n mpi.Network) (*halo.Session, error) {
		return halo.Open(ctx, halo.Devices{Backend: "cuda", Count: 1, Processes: p.Processes, Network: n})
	}
	s := must(open(mpi.Auto))(here)
	if within, across := p.Used(); within != mpi.IPC || across != mpi.Pieces {
		return fmt.Errorf("before a trial messages use %s and %s", within, across)
	}
	trials := must(s.TryNetworks(ctx))(here)
	for _, t := range trials {
		fmt.Printf("rank %d: network %s of %q: %s, measured %t\n", p.Rank, t.Network, t.Library, t.Why, t.SameHost != nil)
	}
	best, _ := p.Used()
	done(here, nil, s.Close())
	s = must(open(""))(here) // which loads the trials
	if within, _ := p.Used(); within != best {
		return fmt.Errorf("the fastest was %s, and %s is used later", best, within)
	}
	done(here, nil, s.Close())
	at := slices.IndexFunc(trials, func(t halo.NetworkTrial) bool { return t.Why != "" && t.Network != mpi.Device })
	if at < 0 {
		return named(p, open, mpi.Device)
	}
	if s, err := open(trials[at].Network); s != nil && err == nil {
		return fmt.Errorf("network %s is used but unavailable: %s", trials[at].Network, trials[at].Why)
	}
	return named(p, open, mpi.Device)
}

// named makes messages use the network that a session names, whatever MPI reports.
func named(p processes, open func(mpi.Network) (*halo.Session, error), n mpi.Network) error {
	s := must(open(n))(here)
	if within, across := p.Used(); within != n || across != n {
		return fmt.Errorf("messages use %s and %s, and %s was named", within, across, n)
	}
	fmt.Fprintf(os.Stdout, "rank %d takes %s\n", p.Rank, n)
	return s.Close()
}

// errs executes a collective call in which rank 1 passes a wrong argument: all processes immediately return
// an error that names rank 1, and can continue.
func (p processes) errs(name, why string, call func(wrong bool) error) error {
	begin := time.Now()
	err := call(p.Rank == 1)
	switch took := time.Since(begin); {
	case err == nil || !strings.Contains(err.Error(), why):
		return fmt.Errorf("%s: %w, want %q", name, err, why)
	case p.Rank != 1 && !strings.Contains(err.Error(), p.Name(1)):
		return fmt.Errorf("%s: the error does not name %s: %w", name, p.Name(1), err)
	case took > testLimit/3:
		return fmt.Errorf("%s took %v", name, took)
	}
	return p.Err()
}

// oneErrs makes a mistake on rank 1 in each collective call.
func oneErrs(p processes) error {
	ctx := context.Background()
	place, spec := p.chain(1)
	plan := must(halo.NewPlan(place, p.links, p2p.Auto, spec))(here)
	f := must(halo.NewField(place, spec))(here)
	s := must(halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 1, Processes: p.Processes}))(here)
	compiler := func(wrong bool) *kernels.Compiler {
		if wrong {
			return nil
		}
		return p.compiler
	}
	ended, end := context.WithCancelCause(ctx)
	end(errors.New("rank 1 stops"))
	contexts := map[bool]context.Context{false: ctx, true: ended}
	return errors.Join(
		p.errs("Open with a context that has ended", "context canceled", func(wrong bool) error {
			_, err := halo.Open(contexts[wrong], halo.Devices{Backend: streams.Host, Count: 1, Processes: p.Processes})
			return err
		}),
		p.errs("Open of -1 devices", "Devices.Count: must not be negative, got -1", func(wrong bool) error {
			_, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: map[bool]int{false: 1, true: -1}[wrong], Processes: p.Processes})
			return err
		}),
		p.errs("Session.NewExchanger", "context canceled", func(wrong bool) error {
			_, err := s.NewExchanger(contexts[wrong], f)
			return err
		}),
		p.errs("NewExchanger", "the compiler is nil", func(wrong bool) error {
			_, err := halo.NewExchanger(plan, compiler(wrong), f)
			return err
		}),
		p.errs("NewAccumulator", "the compiler is nil", func(wrong bool) error {
			_, err := halo.NewAccumulator(plan, compiler(wrong), f)
			return err
		}),
		p.errs("Reduce", "the compiler is nil", func(wrong bool) error {
			_, err := halo.Reduce(f, compiler(wrong), halo.Sum)
			return err
		}),
		s.Close(),
	)
}

// turns is what a process prints when exchanges work, with its rank and its process id.
const turns = "<rank %d, process %d: exchanges>"

// exchanges exchanges ghosts on all processes until one fails.
func exchanges(p processes) error {
	grid := must(domain.NewGrid([]int{16, 16, 4 * p.Size()}, []bool{false, false, true}))(here)
	cut := must(domain.Decompose(grid, domain.Vec{1, 1, p.Size()}))(here)
	var owners []int
	devices := make([]*streams.Device, p.Size())
	for rank := range p.Size() {
		owners = append(owners, rank)
	}
	devices[p.Rank] = p.devices[0]
	place := must(halo.PlaceShared(p.Processes, cut, owners, devices))(here)
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}
	field := must(halo.NewField(place, spec))(here)
	plan := must(halo.NewPlan(place, p.links, p2p.Auto, spec))(here)
	x := must(halo.NewExchanger(plan, p.compiler, field))(here)
	at := must(place.NewStreams())(here)
	for n, end := 0, time.Now().Add(time.Minute); time.Now().Before(end); n++ {
		if err := errors.Join(x.Exchange(at), at.Sync(testLimit)); err != nil {
			return fmt.Errorf("exchange %d: %w", n, err)
		}
		if n == 50 {
			fmt.Fprintf(os.Stderr, turns+"\n", p.Rank, os.Getpid())
		}
	}
	return errors.New("no process has failed")
}

// If a link is cut or a rank is killed during exchanges, all other processes end within the limit and name
// the cause. No process is left.
func TestNetnsFailures(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			name  string
			hosts int
			fail  func(t *testing.T, n *testnet.Net, said string)
			says  *regexp.Regexp // output of the remaining processes; nil if the launcher may end them first
		}{
			{"link", 2, func(t *testing.T, n *testnet.Net, _ string) { n.Hosts[1].Cut(t) }, regexp.MustCompile(`<rank 0 after .*rank 1 on host node1`)},
			{"link of 4", 4, func(t *testing.T, n *testnet.Net, _ string) { n.Hosts[2].Cut(t) }, regexp.MustCompile(`<rank [013] after .*rank 2 on host node2`)},
			{"killed", 2, func(t *testing.T, _ *testnet.Net, said string) { kill(t, said, 1) }, nil},
		} {
			t.Run(tc.name, func(t *testing.T) {
				n := testnet.New(t, tc.hosts)
				job := testmpi.Job{Program: "exchanges", Ranks: tc.hosts}
				job.Said = "<rank 1, process"
				job.Then = func(said string) { tc.fail(t, n, said) }
				r := in.Run(t, n.Over(in, job))
				took := r.Ended.Sub(r.Said)
				t.Logf("all ranks ended %v later; the launcher hung: %t", took.Round(time.Millisecond), r.Hung)
				if r.Said.IsZero() || r.Err == nil || len(r.Left) > 0 || r.Late {
					t.Fatalf("late %t, left %v: %v\n%s", r.Late, r.Left, r.Err, r.Out)
				}
				if took > 30*time.Second {
					t.Errorf("it took %v:\n%s", took, r.Out)
				}
				if tc.says != nil && !tc.says.MatchString(r.Out) {
					t.Errorf("%v is missing:\n%s", tc.says, r.Out)
				}
			})
		}
	})
}

// kill kills the process of a rank that has printed its process id.
func kill(t *testing.T, said string, rank int) {
	found := regexp.MustCompile(fmt.Sprintf(`<rank %d, process (\d+): exchanges>`, rank)).FindStringSubmatch(said)
	if found == nil {
		t.Errorf("rank %d has not printed its process id: %s", rank, said)
		return
	}
	pid, err := strconv.Atoi(found[1])
	if err == nil {
		var p *os.Process
		if p, err = os.FindProcess(pid); err == nil {
			err = p.Kill()
		}
	}
	test.Report(t, err)
}
