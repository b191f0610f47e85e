package ranks_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// wrong is struct Wrong of litmus.cu: which wrong call a rank makes.
type wrong struct {
	Memory     uint64
	What, Rank int64
}

// callNamed returns the number of a call by its name, as named of litmus.cu does: FNV-1a.
func callNamed(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return int64(h.Sum64())
}

// wrongCall is a call that fails, by a rank with 256 bytes.
type wrongCall struct {
	name, want string
	host       func(r caller) // on a CPU device; nil: not possible there
}

// caller is a rank with windows: one of all its memory, a freed one, and one that begins at an unaligned
// address.
type caller struct {
	*ranks.Rank
	w, freed, odd ranks.Window
	bytes         []byte
}

const (
	atOddPlace = "put a packet of 8 bytes at offset %d; bytes must be a multiple of 4, and the offset and the start of the window multiples of 16"
	fromOdd    = "waited for a packet of 8 bytes; bytes must be a multiple of 4, and the address a multiple of 16"
)

func box(bytes, rows, planes int64) ranks.Rows {
	return ranks.Rows{Bytes: bytes, Rows: rows, Planes: planes}
}

var wrongCalls = []wrongCall{
	{"missing notification", "waited 300ms for 2 notifications of tag 3; 1 arrived", func(r caller) { r.WaitNotifications(3, 2) }},
	{"missing tags", "waited 300ms for 1 notifications of one of the tags 10 to 29; 0 arrived", func(r caller) { r.WaitAny(10, 20) }},
	{"barrier by one rank", "waited 300ms at a barrier of the ranks of its device", func(r caller) { r.Barrier(ranks.Device) }},
	{"half of a packet", "waited 300ms for a packet with number 99; its bytes from 4 on have number 98", func(r caller) {
		me := r.Index(ranks.All)
		r.PutPacket(r.w, me, 32, r.bytes[64:72], 98)
		r.WaitPacket(r.bytes[32:], r.bytes[64:72], 98)
		r.PutPacket(r.w, me, 32, r.bytes[64:68], 99)
		r.WaitPacket(r.bytes[32:], r.bytes[64:72], 99)
	}},
	{"tag too large", "used tag 256, must be between 0 and 255", func(r caller) { r.Notify(0, ranks.All, ranks.Tags) }},
	{"negative tag", "used tag -1, must be between 0 and 255", func(r caller) { r.PutNotify(r.w, 0, 0, r.bytes[:8], -1) }},
	{"negative tag by a warp", "used tag -7, must be between 0 and 255", func(r caller) { r.PutNotify(r.w, 0, 0, r.bytes[:8], -7) }},
	{"too many tags", "used tag 2147483651, must be between 0 and 255", func(r caller) { r.WaitAny(5, 1<<31-1) }},
	{"no tags", "passed a count of 0", func(r caller) { r.WaitAny(10, 0) }},
	{"negative count", "passed a count of -1", func(r caller) { r.WaitNotifications(3, 1<<64-1) }},
	{"rank too large", "named rank 6, must be less than 6", func(r caller) { r.Notify(r.Size(ranks.All), ranks.All, 1) }},
	{"negative rank", "named rank -1, must be less than 6", func(r caller) { r.PutNotify(r.w, -1, 0, r.bytes[:8], 0) }},
	{"beyond a window", "accessed 10 bytes at offset 250 of window 0 of rank 0, which has 256 bytes", func(r caller) { r.Put(r.w, 0, 250, r.bytes[:10]) }},
	{"before a window", "accessed 8 bytes at offset -8 of window 0 of rank 5, which has 256 bytes", func(r caller) { r.Put(r.w, 5, -8, r.bytes[:8]) }},
	{"freed window", "used window 1, which does not exist", func(r caller) { r.Put(r.freed, 0, 0, r.bytes[:8]) }},
	{"window freed twice", "used window 1, which does not exist", func(r caller) { r.FreeWindow(r.freed) }},
	{"memory of a freed window", "used window 1, which does not exist", func(r caller) { r.Memory(r.freed, 0) }},
	{"unknown window", "used window 1073741824, which does not exist", func(r caller) { r.Put(ranks.WindowAt(1<<30), 0, 0, r.bytes[:8]) }},
	{"window not made", "used window -1, which does not exist", func(r caller) { r.Put(ranks.WindowAt(-1), 0, 0, r.bytes[:8]) }},
	{"window not made by a warp", "used window -1, which does not exist", func(r caller) { r.Put(ranks.WindowAt(-1), 0, 0, r.bytes[:8]) }},
	{"box beyond a window", "accessed 265 bytes at offset 0 of window 0 of rank 0, which has 256 bytes", func(r caller) {
		r.PutBox(r.w, 0, 0, ranks.Strides{Row: 1 << 61, Plane: 1 << 61}, box(8, 9, 1), r.bytes, ranks.Strides{})
	}},
	{"box before a window", "accessed 88 bytes at offset -8 of window 0 of rank 5, which has 256 bytes", func(r caller) {
		r.PutBox(r.w, 5, 8, ranks.Strides{Row: -8, Plane: 64}, box(8, 3, 2), r.bytes, ranks.Strides{})
	}},
	{"box of -1 rows", "passed a count of -1", func(r caller) {
		r.PutBox(r.w, 0, 0, ranks.Strides{Row: 8}, box(8, -1, 1), r.bytes, ranks.Strides{Row: 8})
	}},
	{"empty box for no rank", "named rank 6, must be less than 6", func(r caller) {
		r.PutBox(r.w, 6, 0, ranks.Strides{Row: 8}, box(8, 0, 1), r.bytes, ranks.Strides{Row: 8})
	}},
	{"box with overlapping rows", "put a box whose rows or planes overlap", func(r caller) {
		r.PutBox(r.w, 0, 0, ranks.Strides{}, box(8, 1<<40, 1), r.bytes, ranks.Strides{})
	}},
	{"packet at an unaligned offset", fmt.Sprintf(atOddPlace, 4), func(r caller) { r.PutPacket(r.w, 0, 4, r.bytes[:8], 1) }},
	{"packet for an unaligned window", fmt.Sprintf(atOddPlace, 0), func(r caller) { r.PutPacket(r.odd, 0, 0, r.bytes[:8], 1) }},
	{"packet from an unaligned address", fromOdd, func(r caller) { r.WaitPacket(r.bytes[8:], r.bytes[64:72], 1) }},
	{"value from an unaligned address", fromOdd, func(r caller) { ranks.WaitValue[float64](r.Rank, r.bytes[8:], 1) }},

	// Sizes whose double, or whose end, does not fit in 64 bits: slices cannot have such sizes.
	{"window of negative size", "passed a count of -9223372036854775808", nil},
	{"put of negative size", "accessed -9223372036854775800 bytes at offset 0 of window 0 of rank 0, which has 256 bytes", nil},
	{"packet of negative size", "waited for a packet of -8 bytes", nil},
	{"collective of too many", "passed a count of 1099511627777", nil},
	{"unknown channel", "sent over channel 2147483647, but is not that end of it", nil},
}

// The error names the failed rank and the reason, within its limit, and all other ranks end.
func TestFailures(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		each := 6 / len(s.Devices)
		for _, c := range wrongCalls {
			if c.host == nil && s.Devices[0].GoKernels {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				var m []*streams.Memory
				p := ranks.Program{Name: "wrong", Kernel: "wrong", Threads: 64, Host: func(r *ranks.Rank) {
					data := ranks.Data[wrong](r)
					bytes := m[r.Device()].Bytes()[256*r.Index(ranks.Device):][:256]
					x := caller{r, r.CreateWindow(ranks.All, bytes), r.CreateWindow(ranks.All, bytes), ranks.Window{}, bytes}
					x.odd = r.CreateWindow(ranks.All, bytes[8:72])
					r.FreeWindow(x.freed)
					if int64(r.Index(ranks.All)) == data.Rank {
						c.host(x)
					} else if c.name == "missing notification" && r.Index(ranks.All) == 0 {
						r.Notify(int(data.Rank), ranks.All, 3)
					}
					r.WaitNotifications(200, 1)
				}}
				is := ranks.ErrArgument
				if strings.HasPrefix(c.want, "waited 300ms") {
					is = ranks.ErrTimeout
				}
				patiently(t, is, func(limit time.Duration) error {
					w := opened(t, s, p, ranks.Options{Ranks: each, Limit: limit, Checks: true})
					m = memory(t, w, 256*int64(each))
					var data []wrong
					for i := range w.Devices() {
						data = append(data, wrong{m[i].Address(), callNamed(c.name), 4})
					}
					want := strings.Replace(c.want, "300ms", limit.String(), 1)
					err := ranks.Run(t.Context(), w, data)
					// If several waits time out at the same time, any may be the first.
					if !errors.Is(err, is) || is != ranks.ErrTimeout && !strings.Contains(err.Error(), "ranks: rank 4 (") || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "of tag 200") {
						return fmt.Errorf("the error is %v, want %q", err, want)
					}
					// The next run starts in the initial state.
					if err := ranks.Run(t.Context(), w, data); !errors.Is(err, is) {
						return fmt.Errorf("the second time the error is %v", err)
					}
					return nil
				})
			})
		}
	})
}

// patiently is testdevices.Patiently if a wait should end by its limit. Otherwise the limit is long.
func patiently(t *testing.T, is error, try func(limit time.Duration) error) {
	t.Helper()
	if is == ranks.ErrTimeout {
		testdevices.Patiently(t, try)
	} else if err := try(2 * time.Minute); err != nil {
		t.Error(err)
	}
}

// The error names the rank that waits for a notification that is never sent, not one that waits for that rank at a
// barrier. A maximum limit does not overflow: the call fails for its argument.
func TestNamesWhoWaits(t *testing.T) {
	for _, c := range []struct {
		call, want string
		is         error
		host       func(r *ranks.Rank)
	}{
		{"wait during a barrier", "for 1 notifications of tag 3; 0 arrived", ranks.ErrTimeout, func(r *ranks.Rank) {
			time.Sleep(50 * time.Millisecond) // all others are at the barrier
			r.WaitNotifications(3, 1)
		}},
		{"negative rank", "has a wrong argument", ranks.ErrArgument, func(r *ranks.Rank) {
			r.PutNotify(ranks.Window{}, -1, 0, nil, 0)
		}},
	} {
		eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
			s.Devices = s.Devices[:min(2, len(s.Devices))]
			p := ranks.Program{Name: "wrong", Kernel: "wrong", Threads: 32, Host: func(r *ranks.Rank) {
				if r.Index(ranks.All) == 1 {
					c.host(r)
				}
			}}
			patiently(t, c.is, func(limit time.Duration) error {
				if c.is != ranks.ErrTimeout {
					limit = math.MaxInt64
				}
				w := opened(t, s, p, ranks.Options{Ranks: 2, Limit: limit, Checks: true})
				m := memory(t, w, 512)
				data := make([]wrong, len(m))
				for i := range data {
					data[i] = wrong{m[i].Address(), callNamed(c.call), 1}
				}
				err := ranks.Run(t.Context(), w, data)
				if !errors.Is(err, c.is) || !strings.Contains(err.Error(), "rank 1 (") || !strings.Contains(err.Error(), c.want) {
					return fmt.Errorf("%s: the error is %v", c.call, err)
				}
				return nil
			})
		})
	}
}

// Ranks on CPU devices reject accesses outside of memory, and calls that need options.
func TestCPURanksReject(t *testing.T) {
	s := testdevices.Host(t, 1)
	for want, call := range map[string]func(r *ranks.Rank, w ranks.Window){
		"put a box that exceeds its source of 8 bytes": func(r *ranks.Rank, w ranks.Window) {
			r.PutBox(w, 0, 0, ranks.Strides{Row: 8}, ranks.Rows{Bytes: 8, Rows: 2, Planes: 1}, make([]byte, 8), ranks.Strides{Row: -1 << 63})
		},
		"accessed 16 bytes of memory with 8":              func(r *ranks.Rank, w ranks.Window) { r.WaitPacket(make([]byte, 8, 64), make([]byte, 8), 1) },
		"named communicator 7":                            func(r *ranks.Rank, _ ranks.Window) { r.Barrier(7) },
		"named communicator 8":                            func(r *ranks.Rank, _ ranks.Window) { r.CreateWindow(8, nil) },
		"named communicator 9":                            func(r *ranks.Rank, _ ranks.Window) { r.Notify(0, 9, 0) },
		"named rank 1, must be less than 1":               func(r *ranks.Rank, w ranks.Window) { r.Memory(w, 1) },
		"used window 7, which does not exist":             func(r *ranks.Rank, w ranks.Window) { r.Memory(ranks.WindowAt(7), 0) },
		"it matched notifications without Options.Queues": func(r *ranks.Rank, w ranks.Window) { r.WaitMatching(w, ranks.Any, ranks.Any, 1) },
	} {
		p := ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
			call(r, r.CreateWindow(ranks.All, make([]byte, 64)))
		}}
		w := opened(t, s, p, ranks.Options{Ranks: 1})
		if err := ranks.Run(t.Context(), w, []int{1}); !errors.Is(err, ranks.ErrArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// A function that ends its goroutine fails its rank, and later runs have all ranks.
func TestEndedGoroutine(t *testing.T) {
	s := testdevices.Host(t, 2)
	leaves := true
	p := ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
		if leaves && r.Index(ranks.All) == 1 {
			runtime.Goexit()
		}
	}}
	w := opened(t, s, p, ranks.Options{Ranks: 2})
	for range 2 {
		test.Says(t, ranks.Run(t.Context(), w, []int{1, 2}), "rank 1 (host 0) failed: its function ended its goroutine")
	}
	leaves = false
	test.Report(t, ranks.Run(t.Context(), w, []int{1, 2}))
}

// A rank that does not end is reported once, however many devices wait for it, and later runs are rejected.
func TestRankThatDoesNotEnd(t *testing.T) {
	s := testdevices.Host(t, 2)
	stop := make(chan struct{})
	p := ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
		r.StartTimer()
		if r.Index(ranks.Device) == 1 {
			<-stop
		}
		r.StopTimer()
	}}
	w := opened(t, s, p, ranks.Options{Ranks: 2})
	const grace = time.Second
	ranks.SetGrace(w, grace)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	begun := time.Now()
	first := ranks.Run(ctx, w, []int{1, 2})
	if first == nil || !errors.Is(first, why) || strings.Count(first.Error(), "p has not ended 1s after it should") != 1 {
		t.Errorf("the error is %v", first)
	}
	if took := time.Since(begun); took < grace || took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	refused := func() {
		t.Helper()
		test.Says(t, ranks.Run(t.Context(), w, []int{1, 2}), "p cannot run again: ranks: p has not ended 1s after it should")
	}
	refused()
	close(stop)
	refused()
	test.Report(t, w.Close())
	ranks.RunOnHost(w, 1) // returns
	for _, d := range s.Devices {
		test.Report(t, d.Err())
	}
}

// Windows must be in existing memory, for an existing communicator.
func TestRejectedWindows(t *testing.T) {
	s := testdevices.Host(t, 1)
	p := program(func(*ranks.Rank) {})
	w := opened(t, s, p, ranks.Options{Ranks: 1})
	m, freed := memory(t, w, 1024)[0], memory(t, w, 64)[0]
	test.Check(t, freed.Close())
	of := func(offset, length int64) func(int) streams.Span {
		return func(int) streams.Span { return streams.Span{Memory: m, Offset: offset, Length: length} }
	}
	for _, c := range []struct {
		want   string
		comm   ranks.Comm
		memory func(int) streams.Span
	}{
		{"of rank 0 of 100 bytes at offset 1000 exceeds memory of 1024 bytes", ranks.All, of(1000, 100)},
		{"of 16 bytes at offset -8 exceeds memory of 1024 bytes", ranks.All, of(-8, 16)},
		{"of -1 bytes at offset 0", ranks.All, of(0, -1)},
		{"at offset 0 exceeds memory of 1024 bytes", ranks.Device, of(0, 1<<62)},
		{"at offset 9223372036854775807 exceeds memory of 1024 bytes", ranks.Device, of(1<<63-1, 1<<63-1)},
		{"of 8 bytes at offset 0 exceeds memory of 0 bytes", ranks.All, func(int) streams.Span { return streams.Span{Length: 8} }},
		{"of host 0 [0, 64) of 64 bytes: the memory is closed", ranks.All, func(int) streams.Span { return freed.All() }},
		{"communicator 7 does not exist", ranks.Comm(7), of(0, 8)},
		{"the function for its memory is nil", ranks.All, nil},
	} {
		test.Says(t, test.ErrorOf(w.NewWindow(c.comm, c.memory)), c.want)
	}
	if _, err := w.NewWindow(ranks.All, of(0, 1024)); err != nil {
		t.Error(err)
	}
	for rank, want := range map[int]string{-1: "rank -1", 0: "rank 0 (host 0)", 1: "rank 1"} {
		if got := w.Name(rank); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// fails is struct Fails of litmus.cu.
type fails struct {
	Apart                   uint64
	Rank, Code, Detail, Tag int64
}

// A rank ends a run with an error of the program. The error names the rank, its device, the code and its
// meaning, whether the others wait or poll for the end of the run. The next run starts in the initial state.
func TestFail(t *testing.T) {
	crowded := errors.New("a segment is full")
	const n = 3
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		p := ranks.Program{Name: "fails", Kernel: "fails", Threads: 96, Errors: map[int64]error{7: crowded}, Host: func(r *ranks.Rank) {
			data := ranks.Data[fails](r)
			if int64(r.Index(ranks.All)) == data.Rank {
				r.Fail(data.Code, data.Detail)
				r.Fail(data.Code+1, 0) // is too late
			}
			for data.Tag >= 0 && r.WaitNotifications(int(data.Tag), 1) || data.Tag < 0 && !r.Ended() {
				time.Sleep(time.Microsecond)
			}
		}}
		w := opened(t, s, p, ranks.Options{Ranks: n})
		m := memory(t, w, 8)
		last := w.Size() - 1
		for _, c := range []struct {
			data  fails
			want  string
			means error
		}{
			{fails{Rank: 1, Code: 7, Detail: 40, Tag: 3}, "failed with code 7, detail 40: a segment is full", crowded},
			{fails{Rank: int64(last), Code: 7, Tag: -1}, "failed with code 7: a segment is full", crowded},
			{fails{Rank: 0, Code: -8, Detail: -1, Tag: -1}, "failed with code -8, detail -1", nil},
			{fails{Rank: int64(last), Tag: 0}, "failed with code 0", nil},
		} {
			data := make([]fails, len(s.Devices))
			for i := range data {
				data[i] = c.data
				data[i].Apart = m[i].Address()
				upload(t, s.Devices[i], m[i], []uint64{0})
			}
			begun := time.Now()
			err := ranks.Run(t.Context(), w, data)
			rank := int(c.data.Rank)
			var of *ranks.CodeError
			if !errors.As(err, &of) || of.Rank != rank || of.Code != c.data.Code || of.Detail != c.data.Detail {
				t.Fatalf("the error is %v: %#v", err, of)
			}
			// The device of another process has its name there
			if i := rank/n - w.First()/n; i >= 0 && i < len(s.Devices) && of.Device != s.Devices[i].String() {
				t.Errorf("the error is of %v, want %v", of.Device, s.Devices[i])
			}
			if want := fmt.Sprintf("ranks: rank %d (%v) %s", rank, of.Device, c.want); !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
			if errors.Is(err, crowded) != (c.means != nil) || errors.Is(err, ranks.ErrTimeout) {
				t.Errorf("%v wraps another error", err)
			}
			if strings.Contains(err.Error(), "another process has ended the run") {
				t.Errorf("%v includes processes that have not failed", err)
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			for i := range data {
				if late := streams.View[uint64](download(t, s.Devices[i], m[i])[:8])[0]; late != 0 {
					t.Errorf("%d threads on %v saw the end in another round than the first thread of their rank", late, s.Devices[i])
				}
			}
		}
	})
}

// Numbers of ranks for a multiple, or an upper limit; and rejected options.
func TestRankCounts(t *testing.T) {
	p := ranks.Program{Name: "fails", Source: source(), Kernel: "fails", Threads: 64, Host: func(*ranks.Rank) {}}
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		count := func(o ranks.Options) (int, error) {
			w, err := ranks.New(s.Compiler, s.Devices, s.Links, p, o)
			if err != nil {
				return 0, err
			}
			return w.Ranks(), w.Close()
		}
		fits := test.Must(count(ranks.Options{}))(t)
		cores := s.Devices[0].Cores
		for _, d := range s.Devices {
			cores = min(cores, d.Cores)
		}
		each := 1
		if fits >= 2*cores {
			each = 2
		}
		for _, c := range []struct {
			o    ranks.Options
			want int
		}{
			{ranks.Options{AtMost: 1}, 1},
			{ranks.Options{AtMost: fits + 1}, fits},
			{ranks.Options{Multiple: fits}, fits},
			{ranks.Options{PerMultiprocessor: each}, each * cores},
			{ranks.Options{PerMultiprocessor: each, Multiple: each * cores}, each * cores},
			{ranks.Options{Ranks: 1, Multiple: 1, AtMost: 5}, 1},
		} {
			if n, err := count(c.o); err != nil || n != c.want {
				t.Errorf("%+v gives %d ranks, %v, want %d", c.o, n, err, c.want)
			}
		}
		for multiple := 1; multiple <= fits; multiple++ {
			if n, err := count(ranks.Options{Multiple: multiple}); err != nil || n != fits/multiple*multiple {
				t.Errorf("a multiple of %d of which %d fit is %d, %v", multiple, fits, n, err)
			}
			if multiple == 5 {
				multiple = max(multiple, fits-2)
			}
		}
		n, err := count(ranks.Options{Multiple: fits + 1})
		if s.Devices[0].GoKernels { // any number fits
			if err != nil || n != fits+1 {
				t.Errorf("%d ranks, %v, want %d", n, err, fits+1)
			}
		} else if !errors.Is(err, ranks.ErrNoRoom) || !strings.Contains(err.Error(), fmt.Sprintf("%d ranks on ", fits+1)) {
			t.Errorf("%d ranks more than fit give %v", fits+1, err)
		}
		for _, o := range []ranks.Options{{Ranks: 1 << 62}, {PerMultiprocessor: 1 << 62}, {Multiple: 1 << 62}} {
			if n, err := count(o); !errors.Is(err, ranks.ErrNoRoom) {
				t.Errorf("%+v gives %d ranks, %v", o, n, err)
			}
		}
		for want, o := range map[string]ranks.Options{
			"Ranks must be a multiple of Multiple, got 7 and 3": {Ranks: 7, Multiple: 3},
			"AtMost must be at least Multiple (6), got 5":       {Multiple: 6, AtMost: 5},
			"must not be negative, got -2 and 0":                {Multiple: -2},
			"must not be negative, got 0 and -1":                {AtMost: -1},
		} {
			test.Says(t, test.ErrorOf(count(o)), want)
		}
	})
}
