package ranks_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// matchesOnHost is the twin of kernel matches.
func matchesOnHost(memory []*streams.Memory, wrong *atomic.Uint64) func(r *ranks.Rank) {
	return func(r *ranks.Rank) {
		n, me := r.Size(ranks.All), r.Index(ranks.All)
		next, before := (me+1)%n, (me+n-1)%n
		mine := memory[r.Device()].Bytes()[16*r.Index(ranks.Device):][:16]
		expect := func(right bool, which uint64) {
			if !right {
				wrong.CompareAndSwap(0, which)
			}
		}
		a, b := r.CreateWindow(ranks.All, mine[:8]), r.CreateWindow(ranks.All, mine[8:])
		setNumber(mine, 0, int32(11*me+3))
		r.PutNotify(a, next, 4, mine[:4], 1)
		r.PutNotify(b, next, 4, mine[:4], 1)
		r.Notify(next, ranks.All, 2)
		r.Notify(before, ranks.All, 5)
		expect(r.WaitMatching(b, before, 1, 1), 1)
		expect(number(mine, 3) == int32(11*before+3) && number(mine, 1) == int32(11*before+3), 2)
		expect(!r.TestMatching(b, ranks.Any, ranks.Any, 1), 3)
		expect(r.WaitMatching(ranks.AnyWindow, before, 2, 1), 4)
		expect(r.TestMatching(a, before, ranks.Any, 1), 5)
		expect(r.WaitMatching(ranks.AnyWindow, next, ranks.Any, 1) && !r.TestMatching(ranks.AnyWindow, ranks.Any, ranks.Any, 1), 6)
		r.Barrier(ranks.All)
		each := min(33, 300/n) // as in the kernel: rank 0 keeps what it does not want yet, and has room for 1024
		for i := range 3*each + 1 {
			r.Notify(0, ranks.All, 10+i%3)
		}
		if me == 0 {
			for from := n - 1; from >= 0; from-- {
				expect(r.WaitMatching(ranks.AnyWindow, from, 11, uint64(each)), 7)
			}
			expect(r.WaitNotifications(10, uint64((each+1)*n)), 8)
			expect(r.WaitAny(10, 3) == 12 && r.WaitNotifications(12, uint64(each*n)-1), 9)
			expect(!r.TestMatching(ranks.AnyWindow, ranks.Any, ranks.Any, 1), 10)
		}
		r.FreeWindow(b)
		r.FreeWindow(a)
	}
}

// Notifications are matched by window, source and tag, and what is not wanted yet is kept in its order.
func TestMatching(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		for _, n := range []int{2, 4} {
			n = max(1, n/processes())
			t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
				var m []*streams.Memory
				var wrong atomic.Uint64
				p := ranks.Program{Name: "matches", Kernel: "matches", Threads: 64, Host: func(r *ranks.Rank) { matchesOnHost(m, &wrong)(r) }}
				w := opened(t, s, p, ranks.Options{Ranks: n, Queues: true})
				m = memory(t, w, 16*int64(n))
				for range 2 {
					for i, d := range runCalls(t, w, m) {
						if d.Wrong != 0 || wrong.Load() != 0 {
							t.Errorf("device %d: check %d of litmus.cu, on the host check %d", i, d.Wrong, wrong.Load())
						}
					}
				}
			})
		}
	})
}

// Several groups of a rank wait at once, and whichever thread waits makes room in the queues of its rank.
func TestGroupsMatch(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		if s.Devices[0].GoKernels {
			t.Skip("SKIPPED: a rank of a host device is one goroutine")
		}
		const n = 2
		w := opened(t, s, ranks.Program{Name: "groups", Kernel: "groups", Threads: 64}, ranks.Options{Ranks: n, Queues: true})
		for i, d := range runCalls(t, w, memory(t, w, 16*n)) {
			if d.Wrong != 0 {
				t.Errorf("device %d: check %d of litmus.cu", i, d.Wrong)
			}
		}
	})
}

// A match of a rank or a tag that there is not is refused.
func TestMatchRefusals(t *testing.T) {
	wants := []string{"used tag 256; 0 to 255 are possible", "named rank 4 of 4", "used tag -1; 0 to 255 are possible", "named rank -2 of 4"}
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		p := ranks.Program{Name: "no match", Kernel: "no_match", Threads: 64, Host: func(r *ranks.Rank) {
			data := ranks.Data[wrong](r)
			if int64(r.Index(ranks.All)) == data.Rank {
				switch data.What {
				case 0:
					r.WaitMatching(ranks.AnyWindow, ranks.Any, ranks.Tags, 1)
				case 1:
					r.TestMatching(ranks.AnyWindow, r.Size(ranks.All), ranks.Any, 1)
				case 2:
					r.WaitNotifications(ranks.Any, 1)
				case 3:
					r.WaitMatching(ranks.AnyWindow, -2, ranks.Any, 1)
				}
			}
		}}
		w := opened(t, s, p, ranks.Options{Ranks: 4 / len(s.Devices), Queues: true, Checks: true})
		for what, want := range wants {
			data := make([]wrong, len(s.Devices))
			for i := range data {
				data[i] = wrong{What: int64(what), Rank: 3}
			}
			if err := ranks.Run(t.Context(), w, data); !errors.Is(err, ranks.ErrArgument) || !strings.Contains(err.Error(), "rank 3 (") || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v", what, err)
			}
		}
	})
}

// Nothing is dropped: who notifies a rank that does not read waits, and says so.
func TestFullQueue(t *testing.T) {
	eachLink(t, 1, func(t *testing.T, s *testdevices.Set) {
		p := ranks.Program{Name: "flood", Kernel: "flood", Threads: 32, Host: func(r *ranks.Rank) {
			for i := 0; i < 100 && r.Index(ranks.All) == 0; i++ {
				r.Notify(1, ranks.All, 7)
			}
			for until := time.Now().Add(time.Second); r.Index(ranks.All) != 0 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
		}}
		w := opened(t, s, p, ranks.Options{Ranks: 2, Queues: true, Limit: 200 * time.Millisecond})
		err := ranks.Run(t.Context(), w, make([]struct{}, len(s.Devices)))
		if !errors.Is(err, ranks.ErrTimeout) || !strings.Contains(err.Error(), "waited 200ms to notify rank 1 of tag 7, which has 64 notifications of its device to read") {
			t.Error(err)
		}
	})
}

// What nobody takes is dropped, though it is more than a rank keeps. A wait for more than that is refused.
func TestMoreThanIsKept(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		p := ranks.Program{Name: "many", Kernel: "many", Threads: 64, Host: func(r *ranks.Rank) {
			waits := ranks.Data[wrong](r).What
			for i := 0; i < 1100 && r.Index(ranks.All) != 0 && waits == 0; i++ {
				r.Notify(0, ranks.All, 3)
			}
			if r.Index(ranks.All) == 0 && waits != 0 {
				r.WaitNotifications(3, uint64(waits))
			}
		}}
		w := opened(t, s, p, ranks.Options{Ranks: 2, Queues: true, Limit: 10 * time.Second})
		for _, waits := range []int64{0, 1025, -1, 0} {
			data := make([]wrong, len(s.Devices))
			for i := range data {
				data[i].What = waits
			}
			err := ranks.Run(t.Context(), w, data)
			if waits == 0 && err == nil {
				continue
			}
			if want := fmt.Sprintf("rank 0 (%v) gave a count of %d; up to 1024 notifications are kept", s.Devices[0], waits); waits == 0 || !errors.Is(err, ranks.ErrArgument) || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v", waits, err)
			}
		}
	})
}
