package ranks_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// wrong is struct Wrong of litmus.cu.
type wrong struct {
	Memory     uint64
	What, Rank int64
}

// A rank that fails says which and of what, within its limit, and takes all others with it.
func TestFailures(t *testing.T) {
	const limit = 300 * time.Millisecond
	cases := []struct {
		what, want string
		is         error
	}{
		0:  {"a notification that does not come", "waited 300ms for 2 notifications of tag 3; 1 came", ranks.ErrTimeout},
		1:  {"a tag that there is not", "used tag 256; 0 to 255 are possible", ranks.ErrArgument},
		2:  {"a rank that there is not", "named rank 6 of 6", ranks.ErrArgument},
		3:  {"beyond the end of a window", "accessed 10 bytes at offset 250 of window 0 of rank 0, which has 256 bytes", ranks.ErrArgument},
		4:  {"a window that was freed", "used window 1, which does not exist", ranks.ErrArgument},
		5:  {"a barrier that others do not reach", "waited 300ms at a barrier of the ranks of its device", ranks.ErrTimeout},
		6:  {"before the beginning of a window", "accessed 8 bytes at offset -8 of window 0 of rank 5, which has 256 bytes", ranks.ErrArgument},
		7:  {"a rank below 0", "named rank -1 of 6", ranks.ErrArgument},
		8:  {"a box whose rows are too far apart", "accessed 265 bytes at offset 0 of window 0 of rank 0, which has 256 bytes", ranks.ErrArgument},
		9:  {"a box before the beginning of a window", "accessed 88 bytes at offset -8 of window 0 of rank 5, which has 256 bytes", ranks.ErrArgument},
		10: {"a count below 0", "gave a count of -1", ranks.ErrArgument},
		11: {"any of no tags", "gave a count of 0", ranks.ErrArgument},
		12: {"a packet at an odd place", "put a packet of 8 bytes at offset 4; bytes are a multiple of 4, and the offset and where the window begins are multiples of 16", ranks.ErrArgument},
		14: {"a window beyond all", "used window 1073741824, which does not exist", ranks.ErrArgument},
		15: {"a window that could not be made, by a warp", "used window -1, which does not exist", ranks.ErrArgument},
		16: {"a window that could not be made", "used window -1, which does not exist", ranks.ErrArgument},
		17: {"a window that is freed twice", "used window 1, which does not exist", ranks.ErrArgument},
		18: {"a packet for a window at an odd place", "put a packet of 8 bytes at offset 0; bytes are a multiple of 4, and the offset and where the window begins are multiples of 16", ranks.ErrArgument},
		19: {"a packet that is waited for at an odd place", "waited for a packet of 8 bytes; bytes are a multiple of 4, and the address is one of 16", ranks.ErrArgument},
		20: {"a value that is waited for at an odd place", "waited for a packet of 8 bytes; bytes are a multiple of 4, and the address is one of 16", ranks.ErrArgument},
		21: {"a box of less than no rows", "gave a count of -1", ranks.ErrArgument},
		22: {"an empty box for a rank that there is not", "named rank 6 of 6", ranks.ErrArgument},
		23: {"where a window lies that was freed", "used window 1, which does not exist", ranks.ErrArgument},
		24: {"a tag below 0", "used tag -1; 0 to 255 are possible", ranks.ErrArgument},
		25: {"a tag below 0, by a warp", "used tag -7; 0 to 255 are possible", ranks.ErrArgument},
		26: {"too many tags", "used tag 2147483651; 0 to 255 are possible", ranks.ErrArgument},
		27: {"half of a packet", "waited 300ms for a packet of number 99; its bytes from 4 on have number 98", ranks.ErrTimeout},
		28: {"a box with all rows at one place", "put a box whose rows or planes are all at one place", ranks.ErrArgument},
		13: {"none of some tags comes", "waited 300ms for 1 notifications of one of the tags 10 to 29; 0 came", ranks.ErrTimeout},
	}
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		each := 6 / len(s.Devices)
		var m []*streams.Memory
		p := ranks.Program{Name: "wrong", Kernel: "wrong", Threads: 64, Host: func(r *ranks.Rank) {
			data := ranks.Data[wrong](r)
			bytes := m[r.Device()].Bytes()[256*r.Index(ranks.Device):][:256]
			w, freed, odd := r.CreateWindow(ranks.All, bytes), r.CreateWindow(ranks.All, bytes), r.CreateWindow(ranks.All, bytes[8:72])
			r.FreeWindow(freed)
			if int64(r.Index(ranks.All)) == data.Rank {
				switch data.What {
				case 0:
					r.WaitNotifications(3, 2)
				case 1:
					r.Notify(0, ranks.All, ranks.Tags)
				case 2:
					r.Notify(r.Size(ranks.All), ranks.All, 1)
				case 3:
					r.Put(w, 0, 250, bytes[:10])
				case 4:
					r.Put(freed, 0, 0, bytes[:8])
				case 5:
					r.Barrier(ranks.Device)
				case 6:
					r.Put(w, 5, -8, bytes[:8])
				case 7:
					r.PutNotify(w, -1, 0, bytes[:8], 0)
				case 8:
					r.PutBox(w, 0, 0, ranks.Strides{Row: 1 << 61, Plane: 1 << 61}, ranks.Rows{Bytes: 8, Rows: 9, Planes: 1}, bytes, ranks.Strides{})
				case 9:
					r.PutBox(w, 5, 8, ranks.Strides{Row: -8, Plane: 64}, ranks.Rows{Bytes: 8, Rows: 3, Planes: 2}, bytes, ranks.Strides{})
				case 10:
					r.WaitNotifications(3, 1<<64-1)
				case 11:
					r.WaitAny(10, 0)
				case 12:
					r.PutPacket(w, 0, 4, bytes[:8], 1)
				case 13:
					r.WaitAny(10, 20)
				case 14:
					r.Put(ranks.WindowAt(1<<30), 0, 0, bytes[:8])
				case 15, 16:
					r.Put(ranks.WindowAt(-1), 0, 0, bytes[:8])
				case 17:
					r.FreeWindow(freed)
				case 18:
					r.PutPacket(odd, 0, 0, bytes[:8], 1)
				case 19:
					r.WaitPacket(bytes[8:], bytes[64:72], 1)
				case 20:
					ranks.WaitValue[float64](r, bytes[8:], 1)
				case 21:
					r.PutBox(w, 0, 0, ranks.Strides{Row: 8}, ranks.Rows{Bytes: 8, Rows: -1, Planes: 1}, bytes, ranks.Strides{Row: 8})
				case 22:
					r.PutBox(w, 6, 0, ranks.Strides{Row: 8}, ranks.Rows{Bytes: 8, Rows: 0, Planes: 1}, bytes, ranks.Strides{Row: 8})
				case 23:
					r.Memory(freed, 0)
				case 24:
					r.PutNotify(w, 0, 0, bytes[:8], -1)
				case 25:
					r.PutNotify(w, 0, 0, bytes[:8], -7)
				case 26:
					r.WaitAny(5, 1<<31-1)
				case 27:
					me := r.Index(ranks.All)
					r.PutPacket(w, me, 32, bytes[64:72], 98)
					r.WaitPacket(bytes[32:], bytes[64:72], 98)
					r.PutPacket(w, me, 32, bytes[64:68], 99)
					r.WaitPacket(bytes[32:], bytes[64:72], 99)
				case 28:
					r.PutBox(w, 0, 0, ranks.Strides{}, ranks.Rows{Bytes: 8, Rows: 1 << 40, Planes: 1}, bytes, ranks.Strides{})
				}
			} else if data.What == 0 && r.Index(ranks.All) == 0 {
				r.Notify(int(data.Rank), ranks.All, 3)
			}
			r.WaitNotifications(200, 1)
		}}
		for what, c := range cases {
			t.Run(c.what, func(t *testing.T) {
				o := ranks.Options{Ranks: each, Limit: time.Minute, Checks: true}
				if c.is == ranks.ErrTimeout {
					o.Limit = limit
				}
				w := opened(t, s, p, o)
				m = memory(t, w, 256*int64(each))
				var data []wrong
				for i := range w.Devices() {
					data = append(data, wrong{m[i].Address(), int64(what), 4})
				}
				begun := time.Now()
				err := ranks.Run(t.Context(), w, data)
				for again := 0; again < 4 && errors.Is(err, ranks.ErrTimeout) && strings.Contains(err.Error(), "at a barrier of all ranks"); again++ {
					begun, err = time.Now(), ranks.Run(t.Context(), w, data) // a rank had no core at all for as long as the limit
				}
				// Of several that wait in vain at the same time any may be the first.
				if !errors.Is(err, c.is) || c.is != ranks.ErrTimeout && !strings.Contains(err.Error(), "ranks: rank 4 (") || !strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "of tag 200") {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				// The next run finds all as it was.
				if err := ranks.Run(t.Context(), w, data); !errors.Is(err, c.is) {
					t.Errorf("the second time the error is %v", err)
				}
			})
		}
	})
}

// A rank that waits for what nobody sends is named, not one of those that wait for it at a barrier since before.
func TestNamesWhoWaits(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		p := ranks.Program{Name: "wrong", Kernel: "wrong", Threads: 32, Host: func(r *ranks.Rank) {
			if r.Index(ranks.All) == 1 {
				time.Sleep(50 * time.Millisecond) // all others are at the barrier
				r.WaitNotifications(3, 1)
			}
		}}
		w := opened(t, s, p, ranks.Options{Ranks: 2, Limit: time.Second})
		m := memory(t, w, 512)
		data := make([]wrong, len(m))
		for i := range data {
			data[i] = wrong{m[i].Address(), 40, 1}
		}
		if err := ranks.Run(t.Context(), w, data); err == nil || !strings.Contains(err.Error(), "rank 1 (") || !strings.Contains(err.Error(), "for 1 notifications of tag 3; 0 came") {
			t.Errorf("the error is %v", err)
		}
	})
}

// Kernels refuse sizes that twins cannot have: those whose double, or whose end, has no place in 64 bits, and numbers of channels likewise.
func TestSizesThatCannotBe(t *testing.T) {
	wants := map[int64]string{
		50: "gave a count of -9223372036854775808",
		51: "accessed -9223372036854775800 bytes at offset 0 of window 0 of rank 0, which has 256 bytes",
		52: "waited for a packet of -8 bytes",
		53: "gave a count of 1099511627777",
		54: "sent over channel 2147483647, of which it is not that end",
	}
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		if s.Devices[0].GoKernels {
			t.Skip("SKIPPED: slices have no such sizes")
		}
		const each = 2
		w := opened(t, s, ranks.Program{Name: "sizes", Kernel: "wrong", Threads: 64}, ranks.Options{Ranks: each, Checks: true})
		m := memory(t, w, 256*each)
		for what, want := range wants {
			var data []wrong
			for i := range w.Devices() {
				data = append(data, wrong{m[i].Address(), what, 1})
			}
			if err := ranks.Run(t.Context(), w, data); !errors.Is(err, ranks.ErrArgument) || !strings.Contains(err.Error(), "rank 1 (") || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		}
	})
}

// Twins refuse what they would read or write beyond, and what the run does not keep.
func TestTwinsRefuse(t *testing.T) {
	s := testdevices.Host(t, 1)
	for want, call := range map[string]func(r *ranks.Rank, w ranks.Window){
		"put a box that reaches beyond its source of 8 bytes": func(r *ranks.Rank, w ranks.Window) {
			r.PutBox(w, 0, 0, ranks.Strides{Row: 8}, ranks.Rows{Bytes: 8, Rows: 2, Planes: 1}, make([]byte, 8), ranks.Strides{Row: -1 << 63})
		},
		"accessed 16 bytes of memory of 8":                func(r *ranks.Rank, w ranks.Window) { r.WaitPacket(make([]byte, 8, 64), make([]byte, 8), 1) },
		"named communicator 7":                            func(r *ranks.Rank, _ ranks.Window) { r.Barrier(7) },
		"named communicator 8":                            func(r *ranks.Rank, _ ranks.Window) { r.CreateWindow(8, nil) },
		"named communicator 9":                            func(r *ranks.Rank, _ ranks.Window) { r.Notify(0, 9, 0) },
		"named rank 1 of 1":                               func(r *ranks.Rank, w ranks.Window) { r.Memory(w, 1) },
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

// A limit as long as can be is none: what is added to it does not turn it into the past.
func TestNoLimit(t *testing.T) {
	eachLink(t, 1, func(t *testing.T, s *testdevices.Set) {
		p := ranks.Program{Name: "wrong", Kernel: "wrong", Threads: 32, Host: func(r *ranks.Rank) {
			if r.Index(ranks.All) == 1 {
				r.PutNotify(ranks.Window{}, -1, 0, nil, 0)
			}
			r.WaitNotifications(200, 1)
		}}
		w := opened(t, s, p, ranks.Options{Ranks: 2, Limit: math.MaxInt64, Checks: true})
		m := memory(t, w, 512)
		data := make([]wrong, len(m))
		for i := range data {
			data[i] = wrong{m[i].Address(), 7, 1}
		}
		if err := ranks.Run(t.Context(), w, data); !errors.Is(err, ranks.ErrArgument) {
			t.Errorf("the error is %v", err)
		}
	})
}

// A function that ends its goroutine fails its rank, and later runs have all ranks.
func TestTwinEndsItsGoroutine(t *testing.T) {
	s := testdevices.Host(t, 2)
	leaves := true
	p := ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
		if leaves && r.Index(ranks.All) == 1 {
			runtime.Goexit()
		}
	}}
	w := opened(t, s, p, ranks.Options{Ranks: 2})
	for range 2 {
		if err := ranks.Run(t.Context(), w, []int{1, 2}); err == nil || !strings.Contains(err.Error(), "rank 1 (host 0) failed: its function ended its goroutine") {
			t.Errorf("the error is %v", err)
		}
	}
	leaves = false
	if err := ranks.Run(t.Context(), w, []int{1, 2}); err != nil {
		t.Error(err)
	}
}

// A rank that does not end is given up once, however many devices wait for it, and later runs are refused.
func TestTwinThatDoesNotEnd(t *testing.T) {
	s := testdevices.Host(t, 2)
	stop := make(chan struct{})
	p := ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
		r.StartTimer()
		if r.Index(ranks.Device) == 1 {
			<-stop
		}
		r.StopTimer()
	}}
	w := opened(t, s, p, ranks.Options{Ranks: 2, Limit: time.Minute})
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
	if took := time.Since(begun); took < grace || took > 2*grace {
		t.Errorf("it took %v", took)
	}
	refused := func() {
		t.Helper()
		if err := ranks.Run(t.Context(), w, []int{1, 2}); err == nil || !strings.Contains(err.Error(), "p runs no more: ranks: p has not ended 1s after it should") {
			t.Errorf("the error is %v", err)
		}
	}
	refused()
	close(stop)
	refused()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	ranks.RunOnHost(w, 1) // returns
	for _, d := range s.Devices {
		if err := d.Err(); err != nil {
			t.Error(err)
		}
	}
}

// Windows are of memory that is there, of a communicator that is there.
func TestWindowsThatAreRefused(t *testing.T) {
	s := testdevices.Host(t, 1)
	p := ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: func(*ranks.Rank) {}}
	w := opened(t, s, p, ranks.Options{Ranks: 1})
	m, freed := memory(t, w, 1024)[0], memory(t, w, 64)[0]
	if err := freed.Close(); err != nil {
		t.Fatal(err)
	}
	of := func(offset, length int64) func(int) streams.Span {
		return func(int) streams.Span { return streams.Span{Memory: m, Offset: offset, Length: length} }
	}
	for _, c := range []struct {
		want   string
		comm   ranks.Comm
		memory func(int) streams.Span
	}{
		{"of rank 0 of 100 bytes at offset 1000 of memory of 1024", ranks.All, of(1000, 100)},
		{"of 16 bytes at offset -8 of memory of 1024", ranks.All, of(-8, 16)},
		{"of -1 bytes at offset 0", ranks.All, of(0, -1)},
		{"at offset 0 of memory of 1024", ranks.Device, of(0, 1<<62)},
		{"at offset 9223372036854775807 of memory of 1024", ranks.Device, of(1<<63-1, 1<<63-1)},
		{"of 8 bytes at offset 0 of memory of 0", ranks.All, func(int) streams.Span { return streams.Span{Length: 8} }},
		{"of host 0 [0, 64) of 64 bytes: the memory is closed", ranks.All, func(int) streams.Span { return freed.All() }},
		{"there is no communicator 7", ranks.Comm(7), of(0, 8)},
		{"no function says which memory", ranks.All, nil},
	} {
		if _, err := w.NewWindow(c.comm, c.memory); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
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
