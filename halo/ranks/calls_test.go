package ranks_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// calls is struct Calls of litmus.cu.
type calls struct{ Memory, Wrong uint64 }

// runCalls runs a program once with memory of each device, and returns the data afterwards.
func runCalls(t *testing.T, w *ranks.World, m []*streams.Memory) []calls {
	t.Helper()
	return run(t, w, func(i int) calls { return calls{Memory: m[i].Address()} })
}

func number(b []byte, at int) int32       { return int32(binary.NativeEndian.Uint32(b[4*at:])) }
func setNumber(b []byte, at int, v int32) { binary.NativeEndian.PutUint32(b[4*at:], uint32(v)) }

// callsOnHost is the counterpart of kernel calls.
func callsOnHost(memory []*streams.Memory, wrong *atomic.Uint64) func(r *ranks.Rank) {
	return func(r *ranks.Rank) {
		n, me, local, others := r.Size(ranks.All), r.Index(ranks.All), r.Index(ranks.Device), r.Size(ranks.Device)
		mine := memory[r.Device()].Bytes()[256*local:][:256]
		expect := func(right bool, which uint64) {
			if !right {
				wrong.CompareAndSwap(0, which)
			}
		}
		for i := range 64 {
			setNumber(mine, i, int32(1000*me+i))
		}
		none, w := r.CreateWindow(ranks.Device, nil), r.CreateWindow(ranks.All, mine)
		r.StartTimer()
		expect(w.Exists() && none.Exists() && me%others == local, 1)
		expect(!r.TestNotifications(9, 1) && r.TestNotifications(9, 0), 2)
		r.Notify(0, ranks.All, 3)
		if me == 0 {
			r.WaitNotifications(3, uint64(n))
			expect(!r.TestNotifications(3, 1), 3)
		}
		r.Notify((local+1)%others, ranks.Device, 4)
		r.WaitNotifications(4, 1)
		got := make([]byte, 64)
		next, before := (me+1)%n, (me+n-1)%n
		r.GetNotify(w, next, 32, got, 5)
		r.Flush(w)
		for i := range 16 {
			expect(number(got, i) == int32(1000*next+8+i), 4)
		}
		r.WaitNotifications(5, 1)
		box := make([]byte, 128)
		for i := range 32 {
			setNumber(box, i, int32(5000*me+i))
		}
		r.Barrier(ranks.All)
		r.PutBox(w, next, 4, ranks.Strides{Row: 32, Plane: 96}, ranks.Rows{Bytes: 8, Rows: 3, Planes: 2}, box, ranks.Strides{Row: 16, Plane: 48})
		r.Notify(next, ranks.All, 6)
		r.WaitNotifications(6, 1)
		for i := range 64 {
			x, y, z := (i-1)%8, (i-1)/8%3, (i-1)/24
			want := int32(1000*me + i)
			if i >= 1 && x < 2 && z < 2 {
				want = int32(5000*before + x + 4*y + 12*z)
			}
			expect(number(mine, i) == want, 6)
		}
		r.Barrier(ranks.Device)
		r.Notify(next, ranks.All, 20+me%7)
		expect(r.WaitAny(20, 7) == 20+before%7, 7)
		expect(!r.TestNotifications(20+before%7, 1), 8)
		r.Barrier(ranks.All)
		for round := 1; round < 4; round++ {
			for words := 1; words <= 6; words += 5 {
				sent, come := make([]byte, 4*words), make([]byte, 4*words)
				for i := range words {
					setNumber(sent, i, int32(100*me+round+i))
				}
				at := 64 * (words / 6)
				r.PutPacket(w, next, int64(at), sent, uint32(7*round))
				expect(r.WaitPacket(mine[at:], come, uint32(7*round)), 11)
				for i := range words {
					expect(number(come, i) == int32(100*before+round+i), 12)
				}
				r.Barrier(ranks.All)
			}
		}
		r.StopTimer()
		r.StopTimer()
		r.FreeWindow(w)
		for range 2 {
			var all [ranks.MaxWindows]ranks.Window
			for i := range all {
				all[i] = r.CreateWindow(ranks.All, mine[4*i:4*i+4])
			}
			expect(all[len(all)-1].Exists() && !r.CreateWindow(ranks.All, mine[:4]).Exists(), 9)
			r.PutNotify(all[5], next, 0, box[:4], 7)
			r.WaitNotifications(7, 1)
			expect(number(mine, 5) == int32(5000*before), 10)
			for i := range all {
				r.FreeWindow(all[i])
			}
		}
		r.FreeWindow(none)
	}
}

// The other calls of ranks, checked by the ranks themselves. Counts of notifications wrap around.
func TestCalls(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		for _, n := range []int{1, 3, 8} {
			t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
				var m []*streams.Memory
				var wrong atomic.Uint64
				p := ranks.Program{Name: "calls", Kernel: "calls", Threads: 64, Host: func(r *ranks.Rank) { callsOnHost(m, &wrong)(r) }}
				w := opened(t, s, p, ranks.Options{Ranks: n, Checks: n == 3})
				ranks.SetFirstCount(w, 1<<64-2)
				m = memory(t, w, 256*int64(n))
				for i, d := range runCalls(t, w, m) {
					if d.Wrong != 0 || wrong.Load() != 0 {
						t.Errorf("device %d: check %d of litmus.cu, on the host check %d", i, d.Wrong, wrong.Load())
					}
					// A timer stopped more often than started has one time.
					if took := w.Timings(i); len(took) != 1 || took[0] < 0 || took[0] > time.Minute {
						t.Errorf("device %d has timings %v", i, took)
					}
				}
			})
		}
	})
}

// upload writes values to the memory of a device.
func upload[T any](t *testing.T, d *streams.Device, to *streams.Memory, values []T) {
	t.Helper()
	from := test.Must(streams.Upload(d, values))(t)
	s := test.Must(d.NewStream(streams.Normal))(t)
	test.Check(t, errors.Join(s.Copy(to.Span(0, from.Size()), from.All()), s.Sync(time.Minute), s.Close(), from.Close()))
}

// A run ends with its context, and with a function that panics.
func TestRunEnds(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		var m []*streams.Memory
		p := ranks.Program{Name: "wrong", Kernel: "wrong", Threads: 32, Host: func(r *ranks.Rank) {
			if ranks.Data[wrong](r).What == 99 {
				panic("no such case")
			}
			r.WaitNotifications(200, 1)
		}}
		w := opened(t, s, p, ranks.Options{Ranks: 2})
		m = memory(t, w, 512)
		data := make([]wrong, len(m))
		for i := range data {
			data[i] = wrong{m[i].Address(), 50, 0}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		begun := time.Now()
		if err := ranks.Run(ctx, w, data); !errors.Is(err, why) || time.Since(begun) > 30*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		test.Is(t, ranks.Run(ctx, w, data), why)
		if s.Devices[0].GoKernels {
			for i := range data {
				data[i].What = 99
			}
			if err := ranks.Run(t.Context(), w, data); err == nil || !strings.Contains(err.Error(), "its function panicked: no such case") || !strings.Contains(err.Error(), "calls_test.go") {
				t.Errorf("a panic gives %v", err)
			}
		}
	})
}

// The sources compile with options and without: those with all kinds of calls for each generation of GPUs, if tests are
// long, the others for one. Otherwise one of them: they take long, and tests run them as C++.
func TestSourceCompiles(t *testing.T) {
	testdevices.InTurn(t, 1, 2)
	testdevices.Once(t)
	if testing.Short() {
		t.Skip("SKIPPED: takes minutes of NVRTC")
	}
	type compiled struct {
		from        kernels.Source
		defines     []string
		generations []string
	}
	all := map[string]compiled{
		"plain":             {source(), nil, testdevices.Generations(0)},
		"all":               {source(), []string{"RANK_CHECKS", "RANK_QUEUES", "RANK_PROXY"}, testdevices.Generations(2)},
		"messages":          {sourceOf("messages.cu"), []string{"RANK_CHECKS"}, []string{"sm_80"}},
		"messages by proxy": {sourceOf("messages.cu"), []string{"RANK_QUEUES", "RANK_PROXY"}, []string{"sm_90"}},
		"collectives":       {sourceOf("collectives.cu"), []string{"RANK_CHECKS"}, []string{"sm_90"}},
		"proxy":             {kernels.Source{Name: "proxy.cu", Text: proxyText}, []string{"RANK_PROXY"}, []string{"sm_100"}},
	}
	for _, name := range testdevices.Some(1, slices.Sorted(maps.Keys(all))) {
		c := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.from.Defines = c.defines
			testdevices.Compile(t, c.from, c.generations...)
		})
	}
}

// ring is struct Ring of litmus.cu.
type ring struct {
	Memory uint64
	Window int64
	Wrong  uint64
}

// A window made before a run exists in every run.
func TestNewWindow(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		const n = 3
		var wrong atomic.Int64
		var made ranks.Window
		p := ranks.Program{Name: "ring", Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
			me, all := r.Index(ranks.All), r.Size(ranks.All)
			mine := r.Memory(made, me)
			setNumber(mine, 0, int32(3*me+1))
			r.PutNotify(made, (me+1)%all, 8, mine[:4], 11)
			got := make([]byte, 4)
			if !r.WaitNotifications(11, 1) || number(mine, 2) != int32(3*((me+all-1)%all)+1) {
				wrong.Add(1)
			}
			r.Get(made, me, 8, got)
			r.FreeWindow(made) // which has no effect
			if r.CreateWindow(ranks.All, nil) == made || number(got, 0) != number(mine, 2) {
				wrong.Add(1)
			}
		}}
		w := opened(t, s, p, ranks.Options{Ranks: n})
		if w.Ranks() != n || w.Size() != n*len(s.Devices)*processes() || len(s.Devices) > ranks.MaxDevices {
			t.Errorf("%d ranks of %d", w.Ranks(), w.Size())
		}
		m := memory(t, w, 16*n)
		span := func(rank int) streams.Span { return m[(rank-w.First())/n].Span(16*int64(rank%n), 16) }
		var err error
		if made, err = w.NewWindow(ranks.All, span); err != nil {
			t.Fatal(err)
		}
		if len(m) > 1 {
			if _, err := w.NewWindow(ranks.All, func(int) streams.Span { return m[0].All() }); err == nil {
				t.Error("a window in memory of another device is accepted")
			}
		}
		for range 2 {
			for _, d := range run(t, w, func(i int) ring { return ring{m[i].Address(), int64(made.Slot()), 0} }) {
				if d.Wrong != 0 || wrong.Load() != 0 {
					t.Errorf("rank %d; on the host %d", int64(d.Wrong)-1, wrong.Load())
				}
			}
		}
		for err == nil {
			_, err = w.NewWindow(ranks.All, span)
		}
		if !strings.Contains(err.Error(), "already has 16 windows") {
			t.Error(err)
		}
	})
}

// Invalid programs, options and devices are rejected with the reason.
func TestErrors(t *testing.T) {
	s := testdevices.Host(t, 2)
	fine := program(func(*ranks.Rank) {})
	for _, c := range []struct {
		want string
		edit func(p *ranks.Program, o *ranks.Options, devices *[]*streams.Device)
	}{
		{"the program has no name", func(p *ranks.Program, _ *ranks.Options, _ *[]*streams.Device) { p.Name = "" }},
		{"multiple of 32 up to 1024, got 33", func(p *ranks.Program, _ *ranks.Options, _ *[]*streams.Device) { p.Threads = 33 }},
		{"has no version for CPU devices", func(p *ranks.Program, _ *ranks.Options, _ *[]*streams.Device) { p.Host = nil }},
		{"must be at least 0, got -1 and 0", func(_ *ranks.Program, o *ranks.Options, _ *[]*streams.Device) { o.Ranks = -1 }},
		{"a device is nil", func(_ *ranks.Program, _ *ranks.Options, d *[]*streams.Device) { *d = []*streams.Device{(*d)[0], nil} }},
		{"between 1 and 16 devices, got 0", func(_ *ranks.Program, _ *ranks.Options, d *[]*streams.Device) { *d = nil }},
		{"1000000000 ranks on host 0; each of 2 CPU devices has up to 32768", func(_ *ranks.Program, o *ranks.Options, _ *[]*streams.Device) { o.Ranks = 1e9 }},
		{"32769 ranks on host 0", func(_ *ranks.Program, o *ranks.Options, _ *[]*streams.Device) { o.Ranks = 32769 }},
		{"Source.Defines must not have RANK_QUEUES, which Options set", func(p *ranks.Program, _ *ranks.Options, _ *[]*streams.Device) {
			p.Source.Defines = []string{"N=3", "RANK_QUEUES=1"}
		}},
		{"Program.Shared must be at least 0, got -1", func(p *ranks.Program, _ *ranks.Options, _ *[]*streams.Device) { p.Shared = -1 }},
	} {
		p, o, devices := fine, ranks.Options{}, s.Devices
		c.edit(&p, &o, &devices)
		test.Says(t, test.ErrorOf(ranks.New(s.Compiler, devices, s.Links, p, o)), c.want)
	}
	w := opened(t, s, fine, ranks.Options{})
	test.Says(t, ranks.Run(t.Context(), w, []int{1}), "must have data for 2 devices, got 1")
	test.Check(t, w.Close())
	_, channel := w.NewChannel(0, 1, 1, 4)
	_, window := w.NewWindow(ranks.All, func(int) streams.Span { return streams.Span{} })
	for _, err := range []error{channel, window, ranks.Run(t.Context(), w, []int{1, 2})} {
		if err == nil || !strings.HasPrefix(err.Error(), "ranks: p: ") || !strings.HasSuffix(err.Error(), "the world is closed") {
			t.Error(err)
		}
	}
}

// On GPUs, data must be readable by kernels; CPU devices accept any type.
func TestDataOfOtherTypes(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, s *testdevices.Set) { refuseData(t, s, s.Devices[0].GoKernels) })
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { refuseData(t, testdevices.CPU(t, 1), false) })
}

func refuseData(t *testing.T, s *testdevices.Set, allowed bool) {
	w := opened(t, s, program(func(*ranks.Rank) {}), ranks.Options{Ranks: 1})
	wrong := func(err error, want string) {
		if allowed && err != nil || !allowed && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	wrong(ranks.Run(t.Context(), w, make([]int, len(s.Devices))), "int must not be used, since its size differs in C")
	wrong(ranks.Run(t.Context(), w, make([]struct{ Of []float64 }, len(s.Devices))), "Of: type must be numbers of fixed size, got []float64")
	wrong(ranks.Run(t.Context(), w, make([]*int64, len(s.Devices))), "type must be numbers of fixed size, got *int64")
}
