package ranks_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// matchesOnHost is the counterpart of kernel matches.
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
		each := min(33, 300/n) // as in the kernel: rank 0 keeps up to 1024 notifications
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

// Notifications are matched by window, source and tag; those that do not match yet are kept in order.
func TestMatching(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		for _, n := range []int{2, 4} {
			n = max(1, n/processes())
			t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
				var m []*streams.Memory
				var wrong atomic.Uint64
				for _, p := range []ranks.Program{
					{Name: "matches", Kernel: "matches", Threads: 64, Host: func(r *ranks.Rank) { matchesOnHost(m, &wrong)(r) }},
					{Name: "who", Kernel: "who", Threads: 64, Host: func(r *ranks.Rank) { whoOnHost(m, &wrong)(r) }},
				} {
					w := opened(t, s, p, ranks.Options{Ranks: n, Queues: true})
					m = memory(t, w, 16*int64(n))
					for range 2 {
						for i, d := range runCalls(t, w, m) {
							if d.Wrong != 0 || wrong.Load() != 0 {
								t.Errorf("%s, device %d: check %d of litmus.cu, on the host check %d", p.Name, i, d.Wrong, wrong.Load())
							}
						}
					}
				}
			})
		}
	})
}

// whoOnHost is the counterpart of kernel who.
func whoOnHost(memory []*streams.Memory, wrong *atomic.Uint64) func(r *ranks.Rank) {
	return func(r *ranks.Rank) {
		n, me := r.Size(ranks.All), r.Index(ranks.All)
		expect := func(right bool, which uint64) {
			if !right {
				wrong.CompareAndSwap(0, which)
			}
		}
		first, w := r.CreateWindow(ranks.All, nil), r.CreateWindow(ranks.All, memory[r.Device()].Bytes()[:8])
		none := r.CreateWindow(ranks.Device, nil)
		if me != 0 {
			r.PutNotify(w, 0, 0, nil, 10+me%3)
			r.Notify(0, ranks.All, 20)
		} else {
			r.PutNotify(none, 0, 0, nil, 30)
			from, came := r.WaitOne(none, ranks.Any, ranks.Any)
			expect(came && from == ranks.Notification{Window: none, Source: 0, Tag: 30}, 1)
			var put, told uint64
			for range 2 * (n - 1) {
				if from, came = r.WaitOne(ranks.AnyWindow, ranks.Any, ranks.Any); !came {
					break
				}
				bit, of := uint64(1)<<from.Source, &told
				if from.Window.Exists() {
					of = &put
					expect(from.Window == w && from.Tag == 10+from.Source%3, 2)
				} else {
					expect(from.Tag == 20 && put&bit != 0, 2)
				}
				expect(from.Source > 0 && from.Source < n && *of&bit == 0, 3)
				*of |= bit
			}
			expect(put == told && put == 1<<n-2, 4)
			from, came = r.TestOne(ranks.AnyWindow, ranks.Any, ranks.Any)
			expect(!came && from == ranks.Notification{Window: ranks.AnyWindow, Source: ranks.Any, Tag: ranks.Any}, 5)
		}
		r.FreeWindow(none)
		r.FreeWindow(w)
		r.FreeWindow(first)
	}
}

// Several groups of a rank wait at once, and any waiting thread makes space in the queues of its rank.
func TestGroupsMatch(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		if s.Devices[0].GoKernels {
			t.Skip("SKIPPED: a rank of a CPU device is one goroutine")
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

// A match of an invalid window, rank or tag fails.
func TestWrongMatches(t *testing.T) {
	none := ranks.WindowAt(-1)
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		for _, c := range []struct {
			name, want string
			host       func(r *ranks.Rank)
		}{
			{"tag too large", "used tag 256, must be between 0 and 255", func(r *ranks.Rank) { r.WaitMatching(ranks.AnyWindow, ranks.Any, ranks.Tags, 1) }},
			{"source too large", "named rank 4, must be less than 4", func(r *ranks.Rank) { r.TestMatching(ranks.AnyWindow, r.Size(ranks.All), ranks.Any, 1) }},
			{"negative tag", "used tag -1, must be between 0 and 255", func(r *ranks.Rank) { r.WaitNotifications(ranks.Any, 1) }},
			{"negative source", "named rank -2, must be less than 4", func(r *ranks.Rank) { r.WaitMatching(ranks.AnyWindow, -2, ranks.Any, 1) }},
			{"no window", "used window -1, which does not exist", func(r *ranks.Rank) { r.WaitMatching(none, ranks.Any, ranks.Any, 1) }},
			{"one of no window", "used window -1, which does not exist", func(r *ranks.Rank) { r.TestOne(none, ranks.Any, ranks.Any) }},
		} {
			p := ranks.Program{Name: "no match", Kernel: "no_match", Threads: 64, Host: func(r *ranks.Rank) {
				if int64(r.Index(ranks.All)) == ranks.Data[wrong](r).Rank {
					c.host(r)
				}
			}}
			w := opened(t, s, p, ranks.Options{Ranks: 4 / len(s.Devices), Queues: true, Checks: true})
			data := slices.Repeat([]wrong{{What: callNamed(c.name), Rank: 3}}, len(s.Devices))
			if err := ranks.Run(t.Context(), w, data); !errors.Is(err, ranks.ErrArgument) || !strings.Contains(err.Error(), "rank 3 (") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
}

// The error of a match that times out has the pattern, and the notifications that the rank has.
func TestMatchTimesOut(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		for _, c := range []struct {
			name, want string
			sent       int
			host       func(r *ranks.Rank)
		}{
			{"window, source and tag", "for 3 notifications of tag 5 from rank 2 in window 17; 2 arrived that do not match", 2,
				func(r *ranks.Rank) { r.WaitMatching(ranks.WindowAt(17), 2, 5, 3) }},
			{"any", "for 3 notifications of any tag from any rank; 2 arrived that do not match", 2,
				func(r *ranks.Rank) { r.WaitMatching(ranks.AnyWindow, ranks.Any, ranks.Any, 3) }},
			{"full", "for 1 notifications of tag 255 from rank 1; it keeps 1024 that do not match, the maximum", 1080,
				func(r *ranks.Rank) { r.WaitOne(ranks.AnyWindow, 1, 255) }},
		} {
			p := ranks.Program{Name: "match times out", Kernel: "match_times_out", Threads: 32, Host: func(r *ranks.Rank) {
				if int64(r.Index(ranks.All)) == ranks.Data[wrong](r).Rank {
					for i := range c.sent {
						r.Notify(r.Index(ranks.All), ranks.All, 6)
						if i%32 == 31 { // reads, so that no notification waits for a slot
							r.TestMatching(ranks.AnyWindow, 1, 255, 1)
						}
					}
					c.host(r)
				}
				for !r.Failed() {
					time.Sleep(time.Millisecond)
				}
			}}
			testdevices.Patiently(t, func(limit time.Duration) error {
				w := opened(t, s, p, ranks.Options{Ranks: 4 / len(s.Devices), Queues: true, Limit: limit})
				data := slices.Repeat([]wrong{{What: callNamed(c.name), Rank: 3}}, len(s.Devices))
				err := ranks.Run(t.Context(), w, data)
				if want := fmt.Sprintf("waited %v %s", limit, c.want); !errors.Is(err, ranks.ErrTimeout) ||
					!strings.Contains(err.Error(), "rank 3 (") || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("%s: %w, want %q", c.name, err, want)
				}
				return nil
			})
		}
	})
}

// Notifications are not dropped: a rank that notifies one that does not read waits, and its error says so.
func TestFullQueue(t *testing.T) {
	eachLink(t, 1, func(t *testing.T, s *testdevices.Set) {
		p := ranks.Program{Name: "flood", Kernel: "flood", Threads: 32, Host: func(r *ranks.Rank) {
			for i := 0; i < 1200 && r.Index(ranks.All) == 0; i++ {
				r.Notify(1, ranks.All, 7)
			}
			for r.Index(ranks.All) != 0 && !r.Failed() {
				time.Sleep(time.Millisecond)
			}
		}}
		testdevices.Patiently(t, func(limit time.Duration) error {
			w := opened(t, s, p, ranks.Options{Ranks: 2, Queues: true, Limit: limit})
			err := ranks.Run(t.Context(), w, make([]struct{}, len(s.Devices)))
			want := fmt.Sprintf("waited %v to notify rank 1 of tag 7, which has 64 unread notifications of this device", limit)
			if !errors.Is(err, ranks.ErrTimeout) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%w, want %q", err, want)
			}
			return nil
		})
	})
}

// Notifications that are never taken are dropped at the end, even if a rank cannot keep them all. Waiting for
// more than it keeps is an error.
func TestTooManyNotifications(t *testing.T) {
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
		w := opened(t, s, p, ranks.Options{Ranks: 2, Queues: true})
		for _, waits := range []int64{0, 1025, -1, 0} {
			data := make([]wrong, len(s.Devices))
			for i := range data {
				data[i].What = waits
			}
			err := ranks.Run(t.Context(), w, data)
			if waits == 0 && err == nil {
				continue
			}
			if want := fmt.Sprintf("rank 0 (%v) passed a count of %d, must be at most the 1024 notifications that are kept", s.Devices[0], waits); waits == 0 || !errors.Is(err, ranks.ErrArgument) || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v", waits, err)
			}
		}
	})
}
