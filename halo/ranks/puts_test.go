package ranks_test

import (
	_ "embed"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed testdata/litmus.cu
var litmus string

func source() kernels.Source { return kernels.Source{Name: "litmus.cu", Text: litmus} }

// opened is a world for the length of a test, of a program of litmus.cu if it names no source.
func opened(t *testing.T, s *testdevices.Set, p ranks.Program, o ranks.Options) *ranks.World {
	t.Helper()
	if p.Source.Text == "" {
		p.Source = source()
	}
	o.Proxy = o.Proxy || usesProxy(t)
	o.Processes = together
	w, err := ranks.New(s.Compiler, s.Devices, s.Links, p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// memory allocates as many bytes on each device for the length of the test.
func memory(t *testing.T, w *ranks.World, bytes int64) (all []*streams.Memory) {
	t.Helper()
	for _, d := range w.Devices() {
		m, err := d.Alloc(bytes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, m)
	}
	return all
}

func hash(a, b uint32) uint32 {
	h := a*0x9e3779b1 ^ (b+0x7f4a7c15)*0x85ebca77
	h ^= h >> 15
	h *= 0xc2b2ae3d
	h ^= h >> 13
	return h
}

func pattern(rank, round int, at int64) byte {
	return byte(hash(uint32(rank*7919+round), uint32(at)) % 251)
}

// puts is struct Puts of litmus.cu.
type puts struct {
	Memory, Source     uint64
	Slot, Rounds, Rest int64
	Errors, First      uint64
}

const (
	poison   = 0xee
	credit   = 128
	someTags = 100
)

// putsOnHost is the counterpart of the kernels of litmus.cu.
func putsOnHost(slots, sources []*streams.Memory, wrong *atomic.Int64) func(r *ranks.Rank) {
	return func(r *ranks.Rank) {
		data := ranks.Data[puts](r)
		n, me, local := r.Size(ranks.All), r.Index(ranks.All), int64(r.Index(ranks.Device))
		mine := slots[r.Device()].Bytes()[2*data.Slot*local:][:2*data.Slot]
		source := sources[r.Device()].Bytes()[data.Slot*local:][:data.Slot]
		w := r.CreateWindow(ranks.All, mine)
		for i := range mine {
			mine[i] = poison
		}
		r.Barrier(ranks.All)
		distance := func(t int) int { return (1 + int(hash(77, uint32(t))%uint32(n))) % n }
		for t := 0; t < int(data.Rounds) && !r.Failed(); t++ {
			h := hash(77, uint32(t))
			to, from := (me+distance(t))%n, (me-distance(t)+n)%n
			kind, step := h/8%8, int64(1)
			if kind == 3 || kind == 4 { // whole words of which each thread has few are copied in their own way
				step = 16
			}
			offset, most, odd := int64(h/64%33)/step*step, data.Slot-64, int64(h/4096%17)/step*step
			bytes := int64(h / 256 % 40)
			switch {
			case kind == 0:
				bytes = most
			case kind < 5:
				bytes = int64(h/256%uint32(most+1)) / step * step
			}
			for i := range bytes {
				source[odd+i] = pattern(me, t, i)
			}
			if pause := hash(uint32(me), uint32(t)); data.Rest > 0 && pause%4 == 0 {
				time.Sleep(time.Duration(int64(pause/4) % data.Rest))
			}
			if t >= 2 && !r.WaitNotifications(credit+t%someTags, 1) {
				return
			}
			at := int64(t%2) * data.Slot
			r.PutNotify(w, to, at+offset, source[odd:odd+bytes], t%someTags)
			if !r.WaitNotifications(t%someTags, 1) {
				return
			}
			r.Flush(w)
			for i := range data.Slot {
				want := byte(poison)
				if i >= offset && i < offset+bytes {
					want = pattern(from, t, i-offset)
				}
				if mine[at+i] != want {
					wrong.Add(1)
				}
				mine[at+i] = poison
			}
			r.Notify((me-distance(t+2)+n)%n, ranks.All, credit+(t+2)%someTags)
		}
		r.FreeWindow(w)
	}
}

// Every rank puts bytes of all sizes and alignments to others and itself, near and far, and is told: what comes is
// what was put, in its place, and nothing else changes. It begins with counts that wrap around.
func TestPuts(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	eachLink(t, 3, func(t *testing.T, s *testdevices.Set) {
		const slot = 4096
		for _, kernel := range []string{"puts_by_blocks", "puts_by_warps"} {
			for _, c := range []struct {
				ranks, threads int
				rounds         int
				rest           time.Duration
			}{{1, 64, 40, 0}, {2, 32, 60, 20 * time.Microsecond}, {5, 128, 40, 50 * time.Microsecond}, {16, 64, 30, 0}} {
				t.Run(fmt.Sprintf("%s/ranks=%d", kernel, c.ranks), func(t *testing.T) {
					if isHeavy(s, c.ranks) {
						t.Skip("SKIPPED: make test-long runs so many ranks of several processes on the CPU")
					}
					if !testdevices.Long() {
						c.rounds /= 2
					}
					c.rounds = onGPUs(t, s, c.rounds, 500)
					var slots, sources []*streams.Memory
					var wrong atomic.Int64
					p := ranks.Program{Name: kernel, Kernel: kernel, Threads: c.threads, Host: func(r *ranks.Rank) { putsOnHost(slots, sources, &wrong)(r) }}
					w := opened(t, s, p, ranks.Options{Ranks: c.ranks, Checks: c.ranks%2 == 1})
					ranks.SetFirstCount(w, 1<<64-5)
					slots, sources = memory(t, w, 2*slot*int64(c.ranks)), memory(t, w, slot*int64(c.ranks))
					for range 2 {
						var data []puts
						for i := range w.Devices() {
							data = append(data, puts{slots[i].Address(), sources[i].Address(), slot, int64(c.rounds), int64(c.rest), 0, 0})
						}
						if err := ranks.Run(t.Context(), w, data); err != nil {
							t.Fatal(err)
						}
						for i, d := range data {
							if d.Errors != 0 || wrong.Load() != 0 {
								t.Errorf("device %d: %d wrong bytes, the first in round %d; on the host %d", i, d.Errors, d.First-1, wrong.Load())
							}
						}
					}
				})
			}
		}
	})
}
