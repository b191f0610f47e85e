// Package testmpi runs tests as several processes under the launchers of the MPI libraries of this machine: the test
// program starts itself again, under mpiexec, and each of these processes runs one of its programs.
package testmpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/p2p/mpi"
)

// Installation is a launcher with a library that belongs to it.
type Installation struct {
	Name    string
	Launch  string   // the file of mpiexec
	Library string   // the file of the library
	Hydra   bool     // the launcher is that of MPICH, otherwise that of Open MPI
	Args    []string // of the launcher
}

// wheels are the libraries that make mpi installs below .mpi of the module.
var wheels = []struct {
	name, folder, library string
	hydra                 bool
}{
	{"mpich", "mpich", "libmpi.so.12", true},
	{"mpich-abi", "mpich", "libmpi_abi.so.1", true},
	{"openmpi", "openmpi", "libmpi.so.40", false},
}

// All returns the available installations, and the reasons why others are not available.
func All(t *testing.T) (found []Installation, missing map[string]string) {
	t.Helper()
	missing = map[string]string{}
	root, _ := cudafake.ModuleRoot() // none on a machine without sources
	for _, w := range wheels {
		prefix := filepath.Join(root, ".mpi", w.folder)
		if local := filepath.Join(prefix, "local"); isFolder(local) {
			prefix = local // folder of Debian's pip
		}
		in := Installation{
			Name: w.name, Hydra: w.hydra,
			Launch:  filepath.Join(prefix, "bin", "mpiexec"),
			Library: filepath.Join(prefix, "lib", w.library),
		}
		why := in.lacks()
		if why == "" {
			why = in.fails()
		}
		if why != "" {
			missing[w.name] = why + "; make mpi gets it"
			continue
		}
		found = append(found, in)
	}
	if in, why := system(); why == "" {
		found = append(found, in)
	} else {
		missing[in.Name] = why
	}
	for i := range found {
		found[i].Args = found[i].arguments()
	}
	return found, missing
}

func (in Installation) lacks() string {
	for _, path := range []string{in.Launch, in.Library} {
		if _, err := os.Stat(path); err != nil {
			return "there is no " + filepath.Base(path)
		}
	}
	return ""
}

// launched has the output of each launcher for the first attempt of this process.
var launched sync.Map

// fails returns the reason why the launcher cannot start a process, or "".
func (in Installation) fails() string {
	try, _ := launched.LoadOrStore(in.Launch, sync.OnceValue(func() string {
		ctx, stop := context.WithTimeout(context.Background(), 30*time.Minute)
		defer stop()
		args := slices.Concat([]string{"-n", "1"}, in.local(), in.arguments(), []string{"true"})
		c := exec.CommandContext(ctx, in.Launch, args...)
		c.Env = in.environment(Job{}, "")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Sprintf("%s starts no process: %v\n%s", in.Launch, err, out)
		}
		return ""
	}))
	return try.(func() string)()
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// systemName is the name of the Open MPI of the system.
const systemName = "system"

// system returns the Open MPI of the system.
func system() (in Installation, why string) {
	in = Installation{Name: systemName}
	launch, err := exec.LookPath("mpiexec.openmpi")
	if err != nil {
		return in, "the system has no mpiexec.openmpi"
	}
	in.Launch = launch
	found, _ := filepath.Glob("/usr/lib/*/libmpi.so.40") // the pattern is well formed
	if len(found) == 0 {
		return in, "the system has no libmpi.so.40 below /usr/lib"
	}
	in.Library = found[0]
	return in, in.fails()
}

// arguments returns the arguments with which a launcher starts more ranks than there are cores, for any user.
func (in Installation) arguments() []string {
	if in.Hydra {
		return nil
	}
	return []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"}
}

// local returns the arguments with which a launcher starts ranks on its own host without ssh, which Open MPI 4 would
// require even there.
func (in Installation) local() []string {
	if in.Name != systemName {
		return nil
	}
	return []string{"--mca", "plm", "isolated"}
}

// Alone returns the environment of a process without a launcher, for the same reason: MPI_Init of Open MPI 4 then
// starts a daemon.
func (in Installation) Alone() []string {
	if in.Name != systemName {
		return nil
	}
	return []string{"OMPI_MCA_plm=isolated"}
}

// Prte reports whether the launcher is that of Open MPI 5, which is PRRTE.
func (in Installation) Prte() bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(in.Launch), "prterun"))
	return !in.Hydra && err == nil && in.Name != "system"
}

// allVariable set to "all" makes Each run a test with all installations, otherwise with one.
const allVariable = "HALOX_TEST_MPI"

// Each runs a test with each installation, or only with the first unless make test-mpi requests all. Missing ones are
// skipped, each by name.
func Each(t *testing.T, test func(t *testing.T, in Installation)) {
	t.Helper()
	found, missing := All(t)
	for name, why := range missing {
		t.Run(name, func(t *testing.T) { t.Skip("SKIPPED: ", why) })
	}
	for i, in := range found {
		t.Run(in.Name, func(t *testing.T) {
			if i > 0 && os.Getenv(allVariable) != "all" {
				t.Skip("SKIPPED: make test-mpi tests with every MPI library")
			}
			test(t, in)
		})
	}
}

// Named returns one installation, and skips the test if it is missing.
func Named(t *testing.T, name string) Installation {
	t.Helper()
	found, missing := All(t)
	for _, in := range found {
		if in.Name == name {
			return in
		}
	}
	t.Skip("SKIPPED: ", strings.TrimSpace(name+": "+missing[name]))
	return Installation{}
}

// Variables of a process that was started to run a program.
const (
	programVariable = "HALOX_TEST_PROGRAM"
	runVariable     = "HALOX_TEST_RUN" // identifies all processes of one launch
)

// IsProgram reports whether Run has started this process.
func IsProgram() bool { return os.Getenv(programVariable) != "" }

// Main is the TestMain of a package with programs. In a process that Run has started it runs the program and exits;
// after an error it prints the error, and the exit code is 1.
func Main(m *testing.M, programs map[string]func() error) {
	name := os.Getenv(programVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	program, ok := programs[name]
	if name == probeProgram {
		os.Exit(mpi.TakeProbe(os.Stdout))
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no program %q\n", name)
		os.Exit(2)
	}
	if err := program(); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// probeProgram is the program that processes start to test MPI with device memory.
const probeProgram = "probe"

// AsOne returns a program that runs a function as one of the processes of a job. If it fails in one, all end.
func AsOne(o mpi.Options, program func(*mpi.Processes) error) func() error {
	return func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o.Probe = []string{"env", programVariable + "=" + probeProgram, self}
		p, err := mpi.Join(context.Background(), o)
		if err != nil || p.IsAlone() {
			return fmt.Errorf("alone: %w", err)
		}
		began := time.Now()
		if err = program(p); err == nil {
			err = p.Close()
		}
		if err != nil {
			took := time.Since(began).Round(time.Millisecond)
			fmt.Fprintf(os.Stderr, "<rank %d after %v: %v>\n", p.Rank, took, err)
			err = errors.Join(p.Fail(err), p.Close())
			p.Abort(3)
			return err
		}
		fmt.Printf("rank %d of %d done\n", p.Rank, p.Size())
		if p.Err() != nil {
			time.Sleep(time.Second) // a launcher ends all when one ends without MPI, and the others print this too
		}
		return nil
	}
}

// Job is the processes to launch.
type Job struct {
	Program string
	Ranks   int
	Args    []string          // of the launcher, in addition to those of the installation
	Env     []string          // "NAME=value"; HALOX_MPI is the installation's library unless it is here
	Limit   time.Duration     // after which all processes are killed; 0: 5 min
	Wrap    []string          // program that starts the launcher; nil: none
	Remote  bool              // ranks are on several hosts, by Args
	Said    string            // text that some rank prints
	Then    func(said string) // if set, is called when it was printed, with the output so far
}

// Result is the result of a launch.
type Result struct {
	Out  string // of all ranks, and of the launcher
	Err  error  // of the launcher: a nonzero exit code
	Took time.Duration
	Late bool      // the limit was reached
	Left []int     // processes that still ran when the launcher had ended, and were killed
	Said time.Time // when After was printed; zero if it was not
	// After that text: when the last rank had ended, and whether the launcher had to be ended later, since it waits for
	// a host that it cannot reach.
	Ended time.Time
	Hung  bool
}

// Run starts the test program under the launcher and waits for it.
func (in Installation) Run(t *testing.T, r Job) Result {
	t.Helper()
	if r.Limit == 0 {
		r.Limit = 30 * time.Minute
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), r.Limit)
	defer stop()
	id := fmt.Sprintf("%d-%d", os.Getpid(), rand.Uint64())
	args := append(slices.Clone(r.Wrap), in.Launch, "-n", strconv.Itoa(r.Ranks))
	if !r.Remote {
		args = append(args, in.local()...)
	}
	args = append(append(append(args, in.Args...), r.Args...), self)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = in.environment(r, id)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // which launchers pass on
	c.WaitDelay = 30 * time.Second
	var result Result
	over, watched := make(chan struct{}), make(chan struct{})
	close(watched)
	out := listener{said: r.Said, then: r.Then, begin: func() {
		watched = make(chan struct{})
		go func() {
			defer close(watched)
			result.Ended, result.Hung = awaitRanks(id, self, over)
			if result.Hung {
				_ = c.Process.Kill() // it may have ended in the meantime
			}
		}()
	}}
	c.Stdout, c.Stderr = &out, &out
	began := time.Now()
	result.Err = c.Run()
	close(over)
	<-watched
	result.Out, result.Took, result.Late, result.Said = out.text.String(), time.Since(began), ctx.Err() != nil, out.at
	result.Left = endAll(id, func(left []int) []int {
		if result.Hung {
			left = ranksAmong(left, self)
		}
		return left
	})
	return result
}

// launcherTime is how long a launcher may run after its last rank on any host has ended.
const launcherTime = 5 * time.Second

// awaitRanks returns when no rank of a launch is left, and whether the launcher ran for long after that.
func awaitRanks(id, self string, over <-chan struct{}) (ended time.Time, hung bool) {
	for {
		if len(ranksAmong(processesOf(id), self)) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	ended = time.Now()
	select {
	case <-over:
		return ended, false
	case <-time.After(launcherTime):
		return ended, true
	}
}

// listener stores the output, and calls a function when it contains a text.
type listener struct {
	text  bytes.Buffer
	said  string
	then  func(said string)
	begin func() // after that
	at    time.Time
}

// Write implements io.Writer. One goroutine calls it.
func (l *listener) Write(b []byte) (int, error) {
	l.text.Write(b)
	if l.then != nil && l.at.IsZero() && strings.Contains(l.text.String(), l.said) {
		l.at = time.Now()
		l.then(l.text.String())
		l.begin()
	}
	return len(b), nil
}

// environment returns the environment of the launcher: that of this process without the variables of another launcher.
func (in Installation) environment(r Job, id string) (all []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "OMPI_") && !strings.HasPrefix(name, "PMI") &&
			name != "HALOX_MPI" {
			all = append(all, v)
		}
	}
	all = append(all, programVariable+"="+r.Program, runVariable+"="+id, "HALOX_MPI="+in.Library)
	return append(all, r.Env...)
}

// endAll kills the processes of a launch that still run after 30 s, and returns them.
func endAll(id string, count func([]int) []int) (left []int) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left = processesOf(id)
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	counted := count(slices.Clone(left))
	for _, pid := range left {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended in the meantime
		}
	}
	return counted
}

// ranksAmong returns the processes that run the test program; others are launchers and their helpers.
func ranksAmong(pids []int, self string) []int {
	return slices.DeleteFunc(pids, func(pid int) bool {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return err != nil || program != self
	})
}

// processesOf returns the processes, except this one, that have the mark of a launch. A process that has ended has no
// environment.
func processesOf(id string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well formed
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environment, []byte(runVariable+"="+id)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Succeeds fails the test unless the launch succeeded in time and left nothing running.
func (r Result) Succeeds(t *testing.T) {
	t.Helper()
	if r.Err != nil || r.Late || len(r.Left) > 0 {
		t.Fatalf("after %v, late %t, left %v: %v\n%s", r.Took, r.Late, r.Left, r.Err, r.Out)
	}
}

// Done is Run of a job that must succeed, and of which each rank must print that it is done: " of 3 done" for 3 ranks.
func (in Installation) Done(t *testing.T, r Job) Result {
	t.Helper()
	result := in.Run(t, r)
	result.Succeeds(t)
	if n := strings.Count(result.Out, fmt.Sprintf(" of %d done", r.Ranks)); n != r.Ranks {
		t.Errorf("%d of %d ranks are done:\n%s", n, r.Ranks, result.Out)
	}
	return result
}

// limitVariable is the limit that Limit returns.
const limitVariable = "HALOX_TEST_LIMIT"

// Limit returns the limit of waits in a program that Patiently started.
func Limit() time.Duration {
	limit, err := time.ParseDuration(os.Getenv(limitVariable))
	if err != nil {
		return 4 * time.Second
	}
	return limit
}

// Patiently runs a job with increasing time limits, see Limit, until wrong returns no error. On a busy machine a
// correct process may not get a core within the first limit.
func (in Installation) Patiently(t *testing.T, r Job, wrong func(Result) error) {
	t.Helper()
	var err error
	for _, limit := range []string{"4s", "20s", "80s"} {
		again := r
		again.Env = append(slices.Clip(r.Env), limitVariable+"="+limit)
		if err = wrong(in.Run(t, again)); err == nil {
			return
		}
	}
	t.Error(err)
}

// Fails fails the test unless a job, see Patiently, ends with an error before its limit, leaves nothing running, and
// prints all of the texts.
func (in Installation) Fails(t *testing.T, r Job, words ...string) {
	t.Helper()
	in.Patiently(t, r, func(r Result) error { return r.failed(words) })
}

// Fails is [Installation.Fails] after one Run.
func (r Result) Fails(t *testing.T, words ...string) {
	t.Helper()
	if err := r.failed(words); err != nil {
		t.Error(err)
	}
}

func (r Result) failed(words []string) error {
	if r.Err == nil || r.Late || len(r.Left) > 0 {
		return fmt.Errorf("after %v, late %t, left %v: %w\n%s", r.Took, r.Late, r.Left, r.Err, r.Out)
	}
	for _, w := range words {
		if !strings.Contains(r.Out, w) {
			return fmt.Errorf("it does not say %q:\n%s", w, r.Out)
		}
	}
	return nil
}
