//go:build linux && cgo

package scheme

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// fakeSession opens two GPUs of a fake driver with free bytes of memory, with a step on them.
func fakeSession(t *testing.T, free int64) (*halo.Session, *Step, *cudafake.Fake) {
	t.Helper()
	compiler := testdevices.NoCompiler(t)
	library := cudafake.Build(t, cudafake.Devices(2), cudafake.Memory(int(free)))
	platform := must(streams.CUDAPlatform(library))(t)
	devices := must(platform.Open())(t)
	t.Cleanup(func() { succeeds(t, errors.Join(streams.CloseAll(devices), platform.Close())) })
	links := must(p2p.Discover(t.Context(), devices, nil))(t)
	links.Model = p2p.NewLinkModel(devices, "") // no measurements
	session := &halo.Session{Backend: streams.CUDA, Devices: devices, Links: links, Compiler: compiler}
	return session, newStep(t, &testdevices.Set{Devices: devices}, 2, 4096), cudafake.Inspect(t, library)
}

// The memory of New, in addition to the variables, is counted before anything is allocated: New fails if a
// device has one byte less, and succeeds otherwise.
func TestNewChecksMemory(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	o := Options{Scheme: Assisted, Path: p2p.Peer, Limit: testLimit}
	session, step, _ := fakeSession(t, 1<<30)
	plan := must(step.Plan(session.Links, o.Path))(t)
	counted := must(DryRun(t.Context(), step, plan, session.Compiler, o))(t)
	need := max(counted[0].Variables+counted[0].Extra, counted[1].Variables+counted[1].Extra)
	if counted[0].Extra <= 0 || counted[0].Pinned <= 0 {
		t.Errorf("counted %+v", counted)
	}

	session, step, fake := fakeSession(t, need-1)
	before := fake.Live()
	_, err := New(t.Context(), session, step, o)
	wants(t, "a byte less", err, streams.ErrOutOfMemory, "out of memory: ")
	wants(t, "a byte less", err, streams.ErrOutOfMemory, "need ")
	leavesNothing(t, fake, before)

	session, step, _ = fakeSession(t, need)
	x := must(New(t.Context(), session, step, o))(t)
	must(x.Steps(t.Context(), 3))(t)
	succeeds(t, x.Close())
}

// leavesNothing fails the test if new objects are left. Kernels stay loaded for the next run.
func leavesNothing(t *testing.T, fake *cudafake.Fake, before cudafake.Live) {
	t.Helper()
	after := fake.Live()
	if after.Modules = before.Modules; after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// Trials step copies of the variables only if there is memory for these, and only schemes for which there is
// memory too.
func TestTrialsCheckMemory(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.Once(t)
	t.Setenv("HALOX_CACHE", t.TempDir())
	_, step, _ := fakeSession(t, 1<<30)
	own := 2 * step.variables()[0].Level(0).Parts[0].Data.Memory.Size()
	for name, free := range map[string]int64{"for half of a copy": own + own/2, "for a copy and no more": 2 * own} {
		session, step, fake := fakeSession(t, free)
		before := fake.Live()
		trials, err := tryCopy(t.Context(), Search{Links: session.Links, Compiler: session.Compiler, Path: p2p.Staged}, step, Options{Path: p2p.Staged, Limit: testLimit})
		if err != nil || len(trials) > 0 {
			t.Errorf("%s: %v, %v", name, trials, err)
		}
		leavesNothing(t, fake, before)
	}
}

// A dry run must use devices of a streams.DryRun.
func TestDryRunOfARealRunner(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := newStep(t, set, 1, 8)
	x := runnerBy(t, set, step, p2p.Peer)
	if _, err := x.DryRun(t.Context(), Options{}); err == nil {
		t.Error("a dry run stepped variables")
	}
	wants(t, "Fit", Fit([]Memory{{Device: set.Devices[0], Variables: 1 << 60}}), streams.ErrOutOfMemory, "a run needs 1 EiB for variables")
}

// A failed trial frees the copy of the variables, and everything that the scheme had made.
func TestFailedTrialFreesEverything(t *testing.T) {
	session, step, fake := fakeSession(t, 1<<30)
	broken := errors.New("a user launch that fails")
	step.Stages[0].Point, step.Stages[0].Kernels = nil, func(Region) (Launch, error) {
		return func(*streams.Stream, int64, float64) error { return broken }, nil
	}
	before := fake.Live()
	wants(t, "", errOf(tryCopy(t.Context(), Search{Links: session.Links, Compiler: session.Compiler, Path: p2p.Staged}, step, Options{Path: p2p.Staged, Limit: testLimit})), broken, "try scheme")
	leavesNothing(t, fake, before)
}

// A run with events prepares its scheme once, however many there are, and frees what it has prepared.
func TestEventsPrepareOnce(t *testing.T) {
	session, step, fake := fakeSession(t, 1<<30)
	for _, name := range All() {
		o := Options{Scheme: name, Path: cmp.Or(name.Needs().Path, p2p.Auto), CheckEvery: 7, Limit: testLimit}
		x := must(New(t.Context(), session, step, o))(t)
		o.Steps = 40
		run := func(every int64) (calls [5]int, events int) {
			all := []string{"cuMemAlloc", "cuMemHostAlloc", "cuStreamCreateWithPriority", "cuEventCreate", "cuGraphInstantiateWithFlags"}
			for i, call := range all {
				calls[i] = -fake.Calls(call)
			}
			e := &Event{Name: "count", Next: Every(every), Do: func(context.Context, Result) error { events++; return nil }}
			must(x.RunEvents(t.Context(), o, e))(t)
			for i, call := range all {
				calls[i] += fake.Calls(call)
			}
			return calls, events
		}
		run(40)
		before := fake.Live()
		once, _ := run(40)
		if often, events := run(3); often != once || once[2] == 0 || events < 13 {
			t.Errorf("%s: %v with %d events, and %v with one", name, often, events, once)
		}
		leavesNothing(t, fake, before)
		succeeds(t, x.Close())
	}
}
