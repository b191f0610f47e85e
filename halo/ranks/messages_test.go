package ranks_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// messages is struct Messages of messages.cu.
type messages struct {
	Memory        uint64
	Rounds, Bytes int64
	Wrong         uint64
}

// runMessages runs a program with so many bytes of memory a rank, twice, and wants no check to fail.
func runMessages(t *testing.T, w *ranks.World, m []*streams.Memory, rounds, bytes int64, wrong *atomic.Uint64) {
	t.Helper()
	for range 2 {
		for i, d := range run(t, w, func(i int) messages {
			return messages{Memory: m[i].Address(), Rounds: rounds, Bytes: bytes}
		}) {
			if d.Wrong != 0 || wrong.Load() != 0 {
				t.Errorf("device %d: check %d of messages.cu; on the host %d", i, d.Wrong, wrong.Load())
			}
		}
	}
}

// swapValues is the counterpart of swap_values.
func swapValues[T ranks.Value](r *ranks.Rank, w ranks.Window, mine []byte, t int, scale int64) bool {
	n, me := int64(r.Size(ranks.All)), int64(r.Index(ranks.All))
	next, before, place, number := (me+1)%n, (me+n-1)%n, int64(16*(t%2)), uint32(t-3)
	ranks.PutValue(r, w, int(next), place, T((me+2)*scale+int64(t)), number)
	ranks.PutValue(r, w, int(before), 32+place, T((me+5)*scale-int64(t)), number)
	low, first := ranks.WaitValue[T](r, mine[place:], number)
	high, second := ranks.WaitValue[T](r, mine[32+place:], number)
	return first && second && low == T((before+2)*scale+int64(t)) && high == T((next+5)*scale-int64(t))
}

// Values of 4 and 8 bytes go to and fro between neighbors, put by blocks, warps and threads; their numbers wrap around.
func TestValues(t *testing.T) {
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		const bytes = 192
		for _, n := range []int{1, 3, 8} {
			t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
				var wrong atomic.Uint64
				var m []*streams.Memory
				rounds := int64(onGPUs(t, s, 12, 1000))
				w := opened(t, s, ranks.Program{Name: "values", Source: sourceOf("messages.cu"), Kernel: "values", Threads: 64, Host: func(r *ranks.Rank) {
					mine := m[r.Device()].Bytes()[bytes*r.Index(ranks.Device):][:bytes]
					for i := range mine {
						mine[i] = 0xee
					}
					w := r.CreateWindow(ranks.All, mine)
					for t := range int(rounds) {
						var right bool
						switch t % 4 {
						case 0:
							right = swapValues[float64](r, w, mine, t, 1000003)
						case 1:
							right = swapValues[int32](r, w, mine, t, 1009)
						case 2:
							right = swapValues[int64](r, w, mine, t, 1000000000039)
						case 3:
							right = swapValues[float32](r, w, mine, t, 17)
						}
						if !right {
							wrong.CompareAndSwap(0, uint64(t)+1)
							return
						}
					}
				}}, ranks.Options{Ranks: n, Checks: n == 3})
				m = memory(t, w, bytes*int64(n))
				runMessages(t, w, m, rounds, bytes, &wrong)
			})
		}
	})
}
