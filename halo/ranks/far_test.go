package ranks_test

import (
	_ "embed"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed testdata/processes.cu
var farText string

func farSource() kernels.Source { return kernels.Source{Name: "processes.cu", Text: farText} }

// third is struct Third of processes.cu.
type third struct {
	Memory               uint64
	Slot, Rounds, Stride int64
	Wrong                uint64
}

// thirdOnHost is the counterpart of kernel third.
func thirdOnHost(memory []*streams.Memory, wrong *atomic.Uint64) func(r *ranks.Rank) {
	return func(r *ranks.Rank) {
		data := ranks.Data[third](r)
		n, me := r.Size(ranks.All), r.Index(ranks.All)
		next, after := (me+int(data.Stride))%n, (me+2*int(data.Stride))%n
		all := memory[r.Device()].Bytes()[2*data.Slot*int64(r.Index(ranks.Device)):][:2*data.Slot]
		mine, source, got := all[:data.Slot], all[data.Slot:data.Slot*3/2], all[data.Slot*3/2:]
		w := r.CreateWindow(ranks.All, mine)
		for t := range data.Rounds {
			offset := t % 2 * data.Slot / 2
			for i := range streams.View[int64](source) {
				streams.View[int64](source)[i] = 1000*t + int64(me) + int64(i)
			}
			r.Put(w, next, offset, source)
			r.Flush(w)
			if !r.Barrier(ranks.All) {
				return
			}
			r.Get(w, after, offset, got)
			r.Flush(w)
			if r.Failed() {
				return
			}
			for i, v := range streams.View[int64](got) {
				if v != 1000*t+int64(next)+int64(i) {
					wrong.CompareAndSwap(0, uint64(t)+1)
				}
			}
			if !r.Barrier(ranks.All) {
				return
			}
		}
		r.FreeWindow(w)
	}
}

// After a barrier a rank sees what another rank has put to a third before it, for sizes below and above a
// proxy's command or a message.
func TestBarrierCoversThirds(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		for _, slot := range []int64{16, 1 << 17} {
			t.Run(fmt.Sprintf("slot=%d", slot), func(t *testing.T) {
				rounds := int64(60)
				if slot > 16 {
					rounds = 6
				}
				var m []*streams.Memory
				var wrong atomic.Uint64
				p := ranks.Program{Name: "third", Source: farSource(), Kernel: "third", Threads: 64, Host: func(r *ranks.Rank) { thirdOnHost(m, &wrong)(r) }}
				w := opened(t, s, p, ranks.Options{Ranks: 2, Checks: slot == 16})
				m = memory(t, w, 2*2*slot)
				stride := int64(w.Ranks()) // to the next device, or process
				if processes() > 1 {
					stride *= int64(len(w.Devices()))
				}
				for i, d := range run(t, w, func(i int) third { return third{m[i].Address(), slot, rounds, stride, 0} }) {
					if d.Wrong != 0 || wrong.Load() != 0 {
						t.Errorf("device %d: round %d; on the host %d", i, int64(d.Wrong)-1, int64(wrong.Load())-1)
					}
				}
			})
		}
	})
}

// twice is struct Twice of processes.cu.
type twice struct {
	Memory           uint64
	Slot, Rounds, To int64
	Wrong            uint64
}

// twiceOnHost is the counterpart of kernel twice.
func twiceOnHost(memory []*streams.Memory) func(r *ranks.Rank) {
	return func(r *ranks.Rank) {
		data := ranks.Data[twice](r)
		all := memory[r.Device()].Bytes()
		mine, source := streams.View[int64](all[:data.Slot]), streams.View[int64](all[data.Slot:])
		w := r.CreateWindow(ranks.All, all[:data.Slot])
		for t := int64(1); t <= data.Rounds; t++ {
			if r.Index(ranks.All) == r.Size(ranks.All)-1 {
				for i := range source {
					source[i] = 1000*t + int64(i)
				}
				r.Put(w, int(data.To), 0, all[data.Slot:])
				r.Flush(w)
			}
			if !r.Barrier(ranks.All) {
				return
			}
			for i, v := range mine {
				if r.Index(ranks.All) == int(data.To) && v != 1000*t+int64(i) && data.Wrong == 0 {
					data.Wrong = uint64(t)
				}
			}
			r.Barrier(ranks.All)
			if !r.Barrier(ranks.All) {
				return
			}
		}
		r.FreeWindow(w)
	}
}

// A rank that has passed a barrier sees what was put before it, even if other ranks have reached the next
// one. With two processes of two devices each, a device accesses one device directly, and others by a proxy
// that is slower.
func TestBarrierAfterBarrier(t *testing.T) {
	testdevices.InTurn(t, 0, 2)
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		const slot = 1 << 18
		var m []*streams.Memory
		p := ranks.Program{Name: "twice", Source: farSource(), Kernel: "twice", Threads: 64, Host: func(r *ranks.Rank) { twiceOnHost(m)(r) }}
		w := opened(t, s, p, ranks.Options{Ranks: 1})
		m = memory(t, w, 2*slot)
		for i, d := range run(t, w, func(i int) twice { return twice{m[i].Address(), slot, 12, 0, 0} }) {
			if d.Wrong != 0 {
				t.Errorf("device %d: round %d", i, d.Wrong)
			}
		}
	})
	if !together.IsAlone() {
		return
	}
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		in.Done(t, testmpi.Job{Program: "tests", Ranks: 2, Env: []string{testsVariable + "=^TestBarrierAfterBarrier$/backend=cuda"}})
	})
}

// diffusion is struct Diffusion of processes.cu.
type diffusion struct {
	Memory       uint64
	Cells, Steps int64
	Sum          float64
}

// diffuseOnHost is the counterpart of kernel diffuse.
func diffuseOnHost(memory []*streams.Memory) func(r *ranks.Rank) {
	return func(r *ranks.Rank) {
		data := ranks.Data[diffusion](r)
		n, me, m := r.Size(ranks.All), r.Index(ranks.All), data.Cells
		bytes := memory[r.Device()].Bytes()[8*(2*m+4)*int64(r.Index(ranks.Device)):][:8*(2*m+4)]
		all := streams.View[float64](bytes)
		beside, from, to := all[2*m:], int64(0), m
		w := r.CreateWindow(ranks.All, bytes)
		for t := range data.Steps {
			place := 2 * (t % 2)
			for side := range int64(2) {
				other, cell := (me+n-1)%n, from
				if side == 1 {
					other, cell = (me+1)%n, from+m-1
				}
				r.PutNotify(w, other, 8*(2*m+place+1-side), bytes[8*cell:][:8], int(t%2))
			}
			if !r.WaitNotifications(int(t%2), 2) {
				return
			}
			diffuseOnce(all[to:to+m], all[from:from+m], beside[place], beside[place+1])
			from, to = to, from
		}
		sum := []float64{0}
		for _, v := range all[from : from+m] {
			sum[0] += v
		}
		ranks.Allreduce(r, sum, sum, ranks.Sum, ranks.All)
		if r.Index(ranks.Device) == 0 {
			data.Sum = sum[0]
		}
		r.FreeWindow(w)
	}
}

// diffuseOnce computes one step of some cells, given their neighbors. A quarter of a number is exact.
func diffuseOnce(to, from []float64, left, right float64) {
	for i := range to {
		before, after := left, right
		if i > 0 {
			before = from[i-1]
		}
		if i+1 < len(from) {
			after = from[i+1]
		}
		to[i] = from[i] + 0.25*((before-from[i])+(after-from[i]))
	}
}

// A solver is bitwise identical to a serial one, for any devices and processes of the ranks.
func TestSameBits(t *testing.T) {
	const cells, steps, all = 37, 24, 8 // all ranks
	each := all / (2 * processes())
	if 2*each*processes() != all {
		t.Skipf("SKIPPED: %d ranks on two devices of %d processes", all, processes())
	}
	ring := make([]float64, all*cells)
	for i := range ring {
		ring[i] = give[float64](hash(5, uint32(i)))
	}
	want := append([]float64(nil), ring...)
	for range steps {
		to := make([]float64, len(want))
		diffuseOnce(to, want, want[len(want)-1], want[0])
		want = to
	}
	sums := make([]float64, all)
	for i, v := range want {
		sums[i/cells] += v
	}
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		if len(s.Devices) != 2 {
			t.Skipf("SKIPPED: %d devices, not two", len(s.Devices))
		}
		var m []*streams.Memory
		p := ranks.Program{Name: "diffuse", Source: farSource(), Kernel: "diffuse", Threads: 64, Host: func(r *ranks.Rank) { diffuseOnHost(m)(r) }}
		w := opened(t, s, p, ranks.Options{Ranks: each})
		const room = 2*cells + 4
		m = memory(t, w, 8*room*int64(each))
		data := run(t, w, func(i int) diffusion {
			first := make([]float64, room*each)
			for k := range each {
				copy(first[room*k:][:cells], ring[cells*(w.First()+i*each+k):])
			}
			upload(t, s.Devices[i], m[i], first)
			return diffusion{Memory: m[i].Address(), Cells: cells, Steps: steps}
		})
		sum := joined(ranks.Sum, sums)
		for i, d := range s.Devices {
			if data[i].Sum != sum {
				t.Errorf("device %d: the sum is %v, want %v", i, data[i].Sum, sum)
			}
			got := streams.View[float64](download(t, d, m[i]))
			for k := range each {
				rank := w.First() + i*each + k
				for c, v := range got[room*k:][:cells] {
					if x := want[cells*rank+c]; math.Float64bits(v) != math.Float64bits(x) {
						t.Fatalf("rank %d, cell %d is %v, want %v", rank, c, v, x)
					}
				}
			}
		}
	})
}

// A barrier covers puts between two devices that use a proxy, while a third accesses both directly: the third
// gets after the barrier what one has put to the other before it.
func TestBarrierCoversMixedLinks(t *testing.T) {
	covers := func(t *testing.T, s *testdevices.Set, rounds int) {
		const slot = 1 << 17
		if len(s.Devices) < 3 {
			t.Skip("SKIPPED: fewer than three GPUs")
		}
		s.Devices = s.Devices[:3]
		for _, i := range []int{0, 1} {
			s.Links.Between(s.Devices[i], s.Devices[1-i]).Usable = false
		}
		w := opened(t, s, ranks.Program{Name: "third", Source: farSource(), Kernel: "third", Threads: 64}, ranks.Options{Ranks: 1})
		m := memory(t, w, 2*slot)
		for i, d := range run(t, w, func(i int) third { return third{m[i].Address(), slot, int64(rounds), 1, 0} }) {
			if d.Wrong != 0 {
				t.Errorf("device %d saw wrong data in round %d", i, d.Wrong-1)
			}
		}
	}
	t.Run("backend=cuda", func(t *testing.T) { covers(t, testdevices.GPUs(t), 1000) })
	t.Run("backend=cuda-on-cpu", func(t *testing.T) {
		covers(t, testdevices.CPUBesideThreads(t, 3), len(testdevices.Again(3, testdevices.Numbers(20))))
	})
}
