package ranks_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// streamOnHost is the counterpart of stream.
func streamOnHost(r *ranks.Rank, rounds, number int, out, in ranks.Channel, before, slots, most int) bool {
	me := r.Index(ranks.All)
	length := func(from, t int) int { return int(hash(uint32(from), uint32(t)) % uint32(most+1)) }
	message := func(from, t int) []byte {
		var all []byte
		for i := range length(from, t) {
			all = binary.NativeEndian.AppendUint32(all, hash(hash(uint32(number%3+3*from), uint32(t)), uint32(i)))
		}
		return all
	}
	got := make([]byte, 4*most)
	for t := range rounds {
		if pause := hash(uint32(me+77), uint32(t)); pause%4 == 0 {
			time.Sleep(time.Duration(pause / 4 % 20000))
		}
		sent := message(me, t)
		if !r.Send(out, sent) {
			return false
		}
		clear(sent)
		for k := t - slots + 1; k <= t && t%slots == slots-1; k++ {
			if n := r.Receive(in, got); n < 0 || string(got[:n]) != string(message(before, k)) {
				return false
			}
		}
	}
	return true
}

// Messages of all lengths arrive whole and in order, by blocks, warps and threads, from ranks that pause,
// over rings of several sizes whose positions wrap around.
func TestChannels(t *testing.T) {
	eachLink(t, 3, func(t *testing.T, s *testdevices.Set) {
		type channels struct {
			each  int
			first uint64
		}
		for _, c := range testdevices.Some(2, []channels{{1, 0}, {2, 1<<64 - 7}, {5, 1<<21 - 9}}) {
			t.Run(fmt.Sprintf("ranks=%d", c.each), func(t *testing.T) {
				rounds := onGPUs(t, s, fewByProxy(t, 40), 500)
				var made []ranks.Channel
				var wrong atomic.Uint64
				w := opened(t, s, ranks.Program{Name: "channels", Source: sourceOf("messages.cu"), Kernel: "channels", Threads: 64, Host: func(r *ranks.Rank) {
					n, me := r.Size(ranks.All), r.Index(ranks.All)
					next, before := (me+1)%n, (me+n-1)%n
					for _, s := range []struct{ out, in, before, slots, most int }{{3 * me, 3 * before, before, 4, 100}, {3*me + 1, 3*next + 1, next, 1, 16}, {3*me + 2, 3*me + 2, me, 2, 3}} {
						if !streamOnHost(r, rounds, s.out, made[s.out], made[s.in], s.before, s.slots, s.most) {
							wrong.CompareAndSwap(0, uint64(s.out)+1)
						}
					}
				}}, ranks.Options{Ranks: c.each, Checks: c.each == 2, Queues: c.each == 5})
				ranks.SetFirstCount(w, c.first)
				n := w.Size()
				for rank := range n {
					for _, to := range []struct{ rank, slots, words int }{{(rank + 1) % n, 4, 100}, {(rank + n - 1) % n, 1, 16}, {rank, 2, 3}} {
						c, err := w.NewChannel(rank, to.rank, to.slots, 4*to.words)
						if err != nil || c.ID() != len(made) {
							t.Fatal(c, err)
						}
						made = append(made, c)
					}
				}
				runMessages(t, w, memory(t, w, 8), int64(rounds), 0, &wrong)
			})
		}
	})
}

// A full channel blocks its sender and drops nothing; misuse is reported.
func TestChannelMisuse(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	var made []ranks.Channel
	message := make([]byte, 68)
	cases := []struct {
		name, want string
		is         error
		host       func(r *ranks.Rank) (right bool) // by rank 2
	}{
		{"full", "waited 300ms for rank 0 to read one of 8 messages of channel 0", ranks.ErrTimeout, func(r *ranks.Rank) bool {
			for range 8 {
				if !r.Send(made[0], message[:12]) {
					return false
				}
			}
			return !r.Send(made[0], message[:12])
		}},
		{"empty", "waited 300ms for message 1 of channel 1, of rank 3", ranks.ErrTimeout,
			func(r *ranks.Rank) bool { return r.Receive(made[1], message) < 0 }},
		{"wrong end", "sent over channel 1, but is not that end of it", ranks.ErrArgument,
			func(r *ranks.Rank) bool { return !r.Send(made[1], message[:4]) }},
		{"unknown channel", "received from channel 7, but is not that end of it", ranks.ErrArgument,
			func(r *ranks.Rank) bool { return r.Receive(ranks.ChannelOf(7), message) < 0 }},
		{"too long", "sent 68 bytes over channel 0, must be a multiple of 4 between 0 and 64", ranks.ErrArgument,
			func(r *ranks.Rank) bool { return !r.Send(made[0], message) }},
		{"half a word", "sent 6 bytes over channel 0, must be a multiple of 4 between 0 and 64", ranks.ErrArgument,
			func(r *ranks.Rank) bool { return !r.Send(made[0], message[:6]) }},
	}
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		each := 4 / len(s.Devices)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				var wrong atomic.Bool
				p := ranks.Program{Name: "odd_channel", Source: sourceOf("messages.cu"), Kernel: "odd_channel", Threads: 64, Host: func(r *ranks.Rank) {
					if r.Index(ranks.All) == 2 {
						wrong.Store(!c.host(r))
						return
					}
					for !r.Failed() { // it does not wait for a message that is never sent: any limit could end first
						time.Sleep(time.Millisecond)
					}
				}}
				patiently(t, c.is, func(limit time.Duration) error {
					w := opened(t, s, p, ranks.Options{Ranks: each, Limit: limit, Checks: true})
					made = nil
					for _, ends := range [][2]int{{2, 0}, {3, 2}} {
						c := test.Must(w.NewChannel(ends[0], ends[1], 8, 64))(t)
						made = append(made, c)
					}
					want := fmt.Sprintf("rank 2 (%v) %s", s.Devices[2/each], strings.Replace(c.want, "300ms", limit.String(), 1))
					for range 2 {
						data := slices.Repeat([]messages{{Rounds: callNamed(c.name)}}, len(s.Devices))
						err := ranks.Run(t.Context(), w, data)
						onGPU := slices.ContainsFunc(data, func(m messages) bool { return m.Wrong != 0 })
						if !errors.Is(err, c.is) || !strings.Contains(err.Error(), want) || onGPU || wrong.Load() {
							return fmt.Errorf("the error is %v, want %q; wrong on GPUs %t, on the host %t", err, want, onGPU, wrong.Load())
						}
					}
					return nil
				})
			})
		}
	})
}

// Invalid channels are rejected with the reason.
func TestChannelErrors(t *testing.T) {
	s := testdevices.Host(t, 1)
	w := opened(t, s, program(func(*ranks.Rank) {}), ranks.Options{Ranks: 3})
	for _, c := range []struct {
		from, to, slots, bytes int
		want                   string
	}{
		{0, 3, 4, 64, "less than 3, got 0 and 3"}, {-1, 0, 4, 64, "less than 3, got -1 and 0"}, {0, 1, 3, 64, "slots must be a power of two, at most 65536, got 3"},
		{0, 1, 0, 64, "65536, got 0"}, {0, 1, 4, 6, "at most 4096, got 6"}, {0, 1, 4, ranks.MaxMessage + 4, "at most 4096, got 4100"},
	} {
		test.Says(t, test.ErrorOf(w.NewChannel(c.from, c.to, c.slots, c.bytes)), c.want)
	}
	for i := range 8 {
		if _, err := w.NewChannel(1, 1, 1, 4); err != nil {
			t.Fatal(i, err)
		}
	}
	test.Says(t, test.ErrorOf(w.NewChannel(0, 1, 1, 4)), "rank 1 already has 16 ends")
	if _, err := w.NewChannel(0, 2, 1, 4); err != nil {
		t.Error(err)
	}
}

// A run on CPU devices allocates nothing: everything was made with the world.
func TestRunAllocatesNothing(t *testing.T) {
	s := testdevices.Host(t, 2)
	const n = 3
	var channel ranks.Channel
	var m []*streams.Memory
	p := ranks.Program{Name: "runs", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
		me, all := r.Index(ranks.All), r.Size(ranks.All)
		mine := m[r.Device()].Bytes()[32*r.Index(ranks.Device):][:32]
		w := r.CreateWindow(ranks.All, mine[:8])
		r.StartTimer()
		for range *ranks.Data[int64](r) {
			r.PutNotify(w, (me+1)%all, 0, mine[8:16], 1)
			r.WaitNotifications(1, 1)
			if me == 0 {
				r.Send(channel, mine[8:16])
			} else if me == all-1 {
				r.Receive(channel, mine[16:])
			}
		}
		r.StopTimer()
		r.FreeWindow(w)
	}}
	w := opened(t, s, p, ranks.Options{Ranks: n})
	m = memory(t, w, 32*n)
	var err error
	if channel, err = w.NewChannel(0, 2*n-1, 2, 16); err != nil {
		t.Fatal(err)
	}
	for _, rounds := range []int64{1, 100} {
		data := []int64{rounds, rounds}
		each := testing.AllocsPerRun(20, func() {
			test.Check(t, ranks.Run(context.Background(), w, data))
		})
		if each > 1 { // the scheduler may run out of cached goroutines
			t.Errorf("a run of %d rounds allocates %v times", rounds, each)
		}
		if took := w.Timings(1); len(took) != 1 || took[0] <= 0 {
			t.Errorf("it took %v", took)
		}
	}
}
