package solvers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Several processes run the same steps as one, with bitwise identical norms.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			program string
			ranks   []int
		}{
			{"schemes", []int{4, 2, 3}},
			{"tolerance", []int{3, 2}},
			{"interrupt", []int{2, 3}},
			{"intervals", []int{3}},
			{"events", []int{2, 3}},
			{"refusals", []int{3}},
		} {
			for _, ranks := range testdevices.Again(1, testdevices.Some(1, tc.ranks)) {
				for _, network := range testdevices.Some(1, []mpi.Network{mpi.IPC, mpi.Pieces}) {
					t.Run(fmt.Sprintf("%s/%s/%d", tc.program, network, ranks), func(t *testing.T) {
						in.Done(t, testmpi.Job{Program: tc.program, Ranks: ranks, Env: over(network)})
					})
				}
			}
		}
	})
}

// networkVariable names the network of programs.
const networkVariable = "HALOX_TEST_NETWORK"

func over(n mpi.Network) []string { return []string{networkVariable + "=" + string(n)} }

// Each scheme runs over network ipc with the bits of one process, or is rejected with a reason.
func TestSchemesOverIPC(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, ranks := range testdevices.Some(1, []int{2, 4, 3}) {
			in.Done(t, testmpi.Job{Program: "schemes over ipc", Ranks: ranks})
		}
	})
}

func schemesOverIPC(p *among) {
	if used := p.session.UsedNetworks(); len(used) != 1 || used[0].Network != mpi.IPC {
		p.Fatalf("networks %+v", used)
	}
	one := fmt.Sprintf("supports one process, got %d", p.processes.Size())
	rejected := map[scheme.Scheme]string{ // "": runs
		scheme.Baseline: "", scheme.TwoStream: "", scheme.Assisted: "", scheme.Blocked: "", scheme.Fused: "",
		scheme.Graph: one, scheme.Ranks: one, scheme.Resident: one,
	}
	for _, name := range scheme.All() {
		of := problem(p, []int{13, 14, 15}, domain.Float64, "ppdtnn")
		why, known := rejected[name]
		if !known {
			p.Fatalf("scheme %s is not in the table", name)
		}
		if why != "" {
			s := p.solver(of, scheme.TwoStream, "")
			_, err := s.Run(p.Context(), scheme.Options{Scheme: name, Steps: 3})
			wants(p, err, scheme.ErrUnsuited, why)
			succeeds(p, s.Close())
			continue
		}
		if name.Needs().Groups {
			of = inGroupsOf(of, 2)
		}
		s := p.solver(of, name, "")
		newOracle(of).verify(p, s, how{scheme: name}, scheme.Options{Steps: 9, CheckEvery: 3})
		succeeds(p, s.Close())
	}
}

// If a process is lost during a run, or fails, the others end in time and name it.
func TestLostProcesses(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		says := map[string]string{"one stops": "no heartbeat from ", "one is gone": "no heartbeat from ", "one fails": "the disk is full"}
		for _, program := range testdevices.Some(3, []string{ // one of them, unless tests are long
			"one stops", "one is gone", "one is gone in fused", "one stops in fused", "one fails", "one fails in fused",
		}) {
			t.Run(program, func(t *testing.T) {
				job := testmpi.Job{Program: program, Ranks: 3, Env: over(testdevices.Some(1, []mpi.Network{mpi.IPC, mpi.Pieces})[0])}
				words := []string{"<rank 0 after ", "rank 2 on host ", says[strings.TrimSuffix(program, " in fused")]}
				if strings.HasPrefix(program, "one is gone") {
					if in.Hydra {
						job.Args = []string{"-disable-auto-cleanup"}
					} else {
						words = nil // the launcher may end all before any process notices
					}
				}
				in.Fails(t, job, words...)
			})
		}
	})
}

// programs are executed by processes that a test has started.
func programs() map[string]func() error {
	all := map[string]func() error{
		"schemes":          inProcesses(testLimit, schemesAmong),
		"schemes over ipc": inProcesses(testLimit, schemesOverIPC),
		"tolerance":        inProcesses(testLimit, toleranceAmong),
		"interrupt":        inProcesses(testLimit, interruptAmong),
		"intervals":        inProcesses(testLimit, intervalsAmong),
		"events":           inProcesses(testLimit, eventsAmong),
		"refusals":         inProcesses(testLimit, refusalsAmong),
	}
	for in, name := range map[string]scheme.Scheme{"": scheme.Assisted, " in fused": scheme.Fused} {
		for what, last := range map[string]func(){
			"one stops":   func() { receives(syscall.SIGSTOP) },
			"one is gone": func() { receives(syscall.SIGKILL) },
			"one fails":   func() { panic("the disk is full") },
		} {
			all[what+in] = inProcesses(testmpi.Limit(), func(p *among) { p.endless(name, last) })
		}
	}
	return all
}

// among is one process in a test with the session that it shares.
type among struct {
	inProgram
	processes *mpi.Processes
	session   *halo.Session
}

// inProcesses runs a program as one of several processes: rank 1 has two CPU devices, and all others one, or
// two each if their number is even. A failure ends all.
func inProcesses(limit time.Duration, program func(*among)) func() error {
	return testmpi.AsOne(mpi.Options{Limit: limit, Piece: 500}, func(p *mpi.Processes) error {
		devices := 1
		if p.Size() == 2 || p.Rank == 1 {
			devices = 2
		}
		session, err := halo.Open(context.Background(), halo.Devices{Backend: streams.Host, Count: devices, Processes: p,
			Network: mpi.Network(os.Getenv(networkVariable))})
		if err == nil {
			err = failed(func() { program(&among{processes: p, session: session}) })
		}
		if err != nil {
			return err
		}
		return session.Close()
	})
}

// failed returns the failure of a program.
func failed(program func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	program()
	return nil
}

// inProgram replaces the test of helpers in a process that executes a program, and ends the program.
type inProgram struct{ testing.TB }

func (inProgram) Helper()                           {}
func (inProgram) Context() context.Context          { return context.Background() }
func (inProgram) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (inProgram) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (inProgram) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// solver decomposes the grid over all devices and prepares the problem for a scheme, over one of its paths:
// the fastest path of this machine, chosen by p2p.Auto, need not be one.
func (p *among) solver(of *Problem, name scheme.Scheme, path p2p.Path) *Solver {
	path = cmp.Or(path, name.Needs().Path, p2p.Auto)
	place := must(p.session.Cut(p.Context(), halo.Cutting{
		Size: of.Grid.Size[:of.Grid.Dims], Periodic: of.Grid.Periodic[:of.Grid.Dims], Fields: []halo.Spec{of.Field()}, Path: path,
	}))(p)
	plan := must(of.NewPlan(place, p.session.Links, path))(p)
	return must(New(p.Context(), of, plan, p.session.Compiler))(p)
}

// schemesAmong runs steps of several problems with all schemes that support several processes.
func schemesAmong(p *among) {
	for i, of := range []*Problem{
		problem(p, []int{13, 9, 11}, domain.Float64, "pppppp"),
		problem(p, []int{7, 15, 10}, domain.Float32, "dtnndd"),
		problem(p, []int{12, 5, 17}, domain.Float64, "nnppdt"),
		problem(p, []int{23, 17}, domain.Float32, "ppdt"),
		inGroupsOf(problem(p, []int{19, 21, 22}, domain.Float64, "ppdtnn"), 2),
		inGroupsOf(problem(p, []int{19, 21, 22}, domain.Float64, "ppddnn"), 4),
	} {
		for j, h := range ways() {
			if h.scheme.Needs().Processes && testdevices.Turn(i+j, 3, 3) {
				s := p.solver(of, h.scheme, h.path)
				newOracle(of).verify(p, s, h, scheme.Options{Steps: 9, CheckEvery: int64(1 + i)})
				succeeds(p, s.Close())
			}
		}
	}
}

// several are schemes that support several processes, in the same order in all.
var several = []scheme.Scheme{scheme.Baseline, scheme.TwoStream, scheme.Assisted, scheme.Fused, scheme.Blocked}

// suiting returns the problem with an exchange interval for which passes of scheme blocked end at other steps
// than those of other schemes.
func suiting(of *Problem, name scheme.Scheme) *Problem {
	if name != scheme.Blocked {
		return of
	}
	return inGroupsOf(of, 3)
}

// toleranceAmong ends runs with the step whose change is small enough.
func toleranceAmong(p *among) {
	of := problem(p, []int{7, 6, 13}, domain.Float64, "dddddd")
	for i, norm := range []scheme.Norm{scheme.MaxNorm, scheme.L2Norm} {
		for j, every := range []int64{1, 7} {
			for k, name := range several {
				if testdevices.Turn(i+j+k, 2, 3) {
					grouped := suiting(of, name)
					s := p.solver(grouped, name, "")
					o := scheme.Options{Steps: 60, Norm: norm, CheckEvery: every, Tolerance: toleranceAt(of, 20, norm)}
					newOracle(grouped).verify(p, s, how{scheme: name}, o)
					succeeds(p, s.Close())
				}
			}
		}
	}
}

// after50 calls call on the last process after 50 steps.
func (p *among) after50(call func()) func(int64) {
	return func(n int64) {
		if n > 50 && p.processes.Rank == p.processes.Size()-1 {
			call()
		}
	}
}

// interruptAmong ends the context of the last process only: all stop at one step.
func interruptAmong(p *among) {
	for _, name := range several {
		of := suiting(problem(p, []int{7, 6, 13}, domain.Float64, "ppdddd"), name)
		s := p.solver(of, name, "")
		ctx, cancel := context.WithCancel(p.Context())
		res := must(s.Run(ctx, scheme.Options{Scheme: name, Steps: 1 << 40, CheckEvery: 1 << 30, Progress: p.after50(cancel)}))(p)
		cancel()
		if res.Stopped != scheme.StoppedInterrupted || res.Steps <= 50 {
			p.Fatalf("%s stopped by %s at %d", name, res.Stopped, res.Steps)
		}
		newOracle(of).stoppedAt(p, s, res)
		succeeds(p, s.Close())
	}
}

// intervalsAmong requests different intervals in every process: those of rank 0 count.
func intervalsAmong(p *among) {
	asked, seen := []int64{3, 5, 1, 0}, []int64{}
	of := problem(p, []int{7, 6, 11}, domain.Float64, "ppdddd")
	s := p.solver(of, scheme.Assisted, "")
	res := must(s.Run(p.Context(), scheme.Options{Scheme: scheme.Assisted, Steps: 1000, Interval: func(steps int64, _ time.Duration) int64 {
		seen = append(seen, steps)
		return asked[len(seen)-1] * int64(p.processes.Rank+1)
	}}))(p)
	if fmt.Sprint(seen) != "[0 3 5 1]" || res.Steps != 10 {
		p.Fatalf("%d steps, intervals of %v", res.Steps, seen)
	}
	newOracle(of).stoppedAt(p, s, res)
	succeeds(p, s.Close())
}

// eventsAmong runs with events, which only rank 0 requests.
func eventsAmong(p *among) {
	for i, name := range testdevices.Some(2, several) {
		of := suiting(problem(p, []int{7, 6, 13}, domain.Float64, "ppdddd"), name)
		if testdevices.Turn(i, 1, 2) {
			s := p.solver(of, name, "")
			requested(p, of, s, name, p.processes.Rank == 0)
			succeeds(p, s.Close())
			continue
		}
		s := p.solver(of, name, "")
		checkEvents(p, of, s, name, 4, []int64{6})
		succeeds(p, s.Close())
	}
}

// refusalsAmong makes invalid requests, some of them only on rank 1, and continues with valid ones.
func refusalsAmong(p *among) {
	of := problem(p, []int{7, 6, 11}, domain.Float64, "ppdddd")
	s := p.solver(of, scheme.TwoStream, "")
	for _, name := range []scheme.Scheme{scheme.Graph, scheme.Ranks, scheme.Resident} {
		_, err := s.Run(p.Context(), scheme.Options{Scheme: name, Steps: 3})
		wants(p, err, scheme.ErrUnsuited, fmt.Sprintf("supports one process, got %d", p.processes.Size()))
	}
	_, err := s.Run(p.Context(), scheme.Options{Scheme: scheme.TwoStream, Steps: int64(3 + p.processes.Rank)})
	wants(p, err, nil, "all must have the same options")
	wrong, plan := *of, &scheme.Plan{Stages: s.Plans()}
	if p.processes.Rank == 1 {
		wrong.Spacing = nil
	}
	_, err = New(p.Context(), &wrong, plan, p.session.Compiler)
	search := scheme.Search{Links: p.session.Links, Compiler: p.session.Compiler}
	_, _, failed := Fastest(p.Context(), &wrong, plan.Stages[0].Placement, search, scheme.Options{})
	for _, err := range []error{err, failed} {
		wants(p, err, nil, "must have equal dimensions, got 3, 0 and 3")
		if p.processes.Rank != 1 {
			wants(p, err, nil, p.processes.Name(1))
		}
	}
	succeeds(p, p.processes.Err())
	res := must(s.Run(p.Context(), scheme.Options{Steps: 3}))(p)
	if res.Scheme != scheme.TwoStream || res.Steps != 3 {
		p.Fatalf("scheme %s, %d steps", res.Scheme, res.Steps)
	}
	newOracle(of).stoppedAt(p, s, res)
	succeeds(p, s.Close())
}

// endless runs steps with a scheme without end, and calls at on the last process after 50.
func (p *among) endless(name scheme.Scheme, at func()) {
	s := p.solver(problem(p, []int{7, 6, 11}, domain.Float64, "ppdddd"), name, "")
	res, err := s.Run(p.Context(), scheme.Options{Scheme: name, Steps: 1 << 40, CheckEvery: 10, Progress: p.after50(at)})
	p.Fatalf("stopped at %d: %v", res.Steps, err)
}

// receives sends a signal to this process.
func receives(signal syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), signal)
	time.Sleep(10 * time.Minute) // other threads may stop a little later
}
