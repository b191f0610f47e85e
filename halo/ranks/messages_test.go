package ranks_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// messages is struct Messages of messages.cu.
type messages struct {
	Memory        uint64
	Rounds, Bytes int64
	Wrong         uint64
}

// runMessages runs a program twice with some bytes of memory per rank, and expects no check to fail.
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

// Values of 4 and 8 bytes go back and forth between neighbors, put by blocks, warps and threads; their
// numbers wrap around.
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

// Log lines of ranks are complete, and in order for each rank, even if there are more than the buffer holds.
func TestLog(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		var log strings.Builder
		const n = 3
		w := opened(t, s, ranks.Program{Name: "logs", Kernel: "logs", Threads: 32, Host: func(r *ranks.Rank) {
			for i := range 300 {
				r.Log("line ", i, " of ", uint32(300), " is ", 0.5*float64(i), " and ", float32(1.5), " at ", -7)
			}
			if r.Index(ranks.All) == 0 {
				r.Log("this is longer than a line may be")
				r.Log("cut: ", "01234567")
				r.Log("odd:\n", true, " ", float32(0.1))
			}
		}}, ranks.Options{Ranks: n, Log: &log})
		for range 2 {
			log.Reset()
			test.Check(t, ranks.Run(t.Context(), w, make([]struct{}, len(s.Devices))))
			next := make([]int, w.Size())
			long, odd, cut := 0, 0, 0
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "longer than a line may be") {
					long++
					continue
				}
				switch _, text, _ := strings.Cut(line, "): "); {
				case text == "odd: 1 0.10000000149011612\n":
					odd++
					continue
				case strings.HasPrefix(text, "cut: ") && strings.HasSuffix(text, " 01234567\n"):
					cut++
					continue
				}
				var rank int
				if _, err := fmt.Sscanf(line, "rank %d", &rank); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				i := next[rank]
				next[rank]++
				want := fmt.Sprintf("rank %d (%v): line %d of 300 is %v and 1.5 at -7\n", rank, s.Devices[rank/n], i, 0.5*float64(i))
				if line != want {
					t.Fatalf("%q, want %q", line, want)
				}
			}
			for rank, lines := range next {
				if lines != 300 {
					t.Errorf("rank %d has %d lines", rank, lines)
				}
			}
			if long != 1 || odd != 1 || cut != 1 {
				t.Errorf("%d long lines, %d odd ones, %d that are cut", long, odd, cut)
			}
		}
	})
}

// The device of a rank computed by multiplication equals that by division: for the first and the last rank of
// each device, with any number of ranks per device.
func TestDeviceOfRank(t *testing.T) {
	for n := uint64(1); n <= 1<<14; n++ {
		r := ranks.Reciprocal(int(n))
		for device := range uint64(ranks.MaxDevices) {
			for _, rank := range []uint64{device * n, device*n + n - 1} {
				if got := rank * r >> 32; got != device {
					t.Fatalf("rank %d of %d on each device: device %d, want %d", rank, n, got, device)
				}
			}
		}
	}
}
