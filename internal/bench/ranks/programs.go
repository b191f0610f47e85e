package ranks

import (
	_ "embed"
	"fmt"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed bench.cu
var benchSource string

//go:embed overlap.cu
var overlapSource string

//go:embed lap.cuh
var lapHeader string

// lap is struct Lap of lap.cuh.
type lap struct {
	Memory                    uint64
	Bytes, Rounds, Comm, Work int64
	First                     int64
	Apart                     int64
	Span                      int64
}

// area is the number of bytes per rank: see Lap.area_of.
func (l *lap) area() int64 { return 4*l.Bytes + l.Span }

// kernel is a kernel and its Go counterpart, which gets a rank's area of memory, and the channels of the world.
type kernel struct {
	name string
	host hostFunc
	file func(threads int) kernels.Source
}

type hostFunc = func(r *haloranks.Rank, l *lap, memory []byte, ends []haloranks.Channel)

// ofBench and ofOverlap return the files of kernels, for ranks with the given number of threads.
func ofBench(int) kernels.Source { return sourceOf("bench.cu", benchSource) }
func ofOverlap(threads int) kernels.Source {
	return sourceOf("overlap.cu", overlapSource, fmt.Sprintf("THREADS=%d", threads))
}

func sourceOf(name, text string, defines ...string) kernels.Source {
	return kernels.Source{
		Name: name, Text: text, Defines: defines,
		Headers: []kernels.Header{{Name: "lap.cuh", Text: lapHeader}},
		Mirrors: []kernels.Mirror{{Name: "Lap", Value: lap{}}},
	}
}

// program is a kernel with its device memory, its channels and a number of threads per rank.
func (k kernel) program(threads int, memory []*streams.Memory, ends []haloranks.Channel) haloranks.Program {
	return haloranks.Program{
		Name: k.name, Source: k.file(threads), Kernel: k.name, Threads: threads,
		Host: func(r *haloranks.Rank) {
			l := haloranks.Data[lap](r)
			k.host(r, l, memory[r.Device()].Bytes()[l.area()*int64(r.Index(haloranks.Device)):][:l.area()], ends)
		},
	}
}

var pingPong = kernel{"ping_pong", func(r *haloranks.Rank, l *lap, memory []byte, _ []haloranks.Channel) {
	me := r.Index(haloranks.All)
	w := r.CreateWindow(haloranks.All, memory[:l.Bytes])
	r.StartTimer()
	for i := int64(0); i < l.Rounds && me < 2; i++ {
		for turn := range 2 {
			switch {
			case turn != me:
				if !r.WaitNotifications(0, 1) {
					return
				}
			case l.Bytes == 0:
				r.Notify(1-me, haloranks.All, 0)
			default:
				r.PutNotify(w, 1-me, 0, memory[l.Bytes:2*l.Bytes], 0)
			}
		}
	}
	r.StopTimer()
	r.FreeWindow(w)
}, ofBench}

var packets = kernel{"packets", func(r *haloranks.Rank, l *lap, memory []byte, _ []haloranks.Channel) {
	me := r.Index(haloranks.All)
	w := r.CreateWindow(haloranks.All, memory[:2*l.Bytes])
	got := make([]byte, l.Bytes)
	r.StartTimer()
	for i := int64(1); i <= l.Rounds && me < 2; i++ {
		for turn := range 2 {
			if turn == me {
				r.PutPacket(w, 1-me, 0, memory[2*l.Bytes:3*l.Bytes], uint32(l.First+i))
			} else if !r.WaitPacket(memory, got, uint32(l.First+i)) {
				return
			}
		}
	}
	r.StopTimer()
	r.FreeWindow(w)
}, ofBench}

var oneWay = kernel{"one_way", func(r *haloranks.Rank, l *lap, memory []byte, _ []haloranks.Channel) {
	me, n := r.Index(haloranks.All), r.Size(haloranks.Device)
	far := r.Size(haloranks.All) > n
	w := r.CreateWindow(haloranks.All, memory[:l.Bytes])
	r.StartTimer()
	r.Barrier(haloranks.All)
	to := (me + 1) % n
	if far {
		to = me + n
	}
	if !far || me < n {
		for range l.Rounds {
			r.PutNotify(w, to, 0, memory[l.Bytes:2*l.Bytes], 0)
		}
	}
	if !far || me >= n {
		r.WaitNotifications(0, uint64(l.Rounds))
	}
	r.Barrier(haloranks.All)
	r.StopTimer()
	r.FreeWindow(w)
}, ofBench}

var barriers = kernel{"barriers", func(r *haloranks.Rank, l *lap, _ []byte, _ []haloranks.Channel) {
	r.StartTimer()
	r.Barrier(haloranks.All)
	for range l.Rounds {
		if !r.Barrier(haloranks.Comm(l.Comm)) {
			return
		}
	}
	r.StopTimer()
}, ofBench}

// The collectives, by work.
const (
	aBroadcast = iota
	aReduce
	anAllreduce
)

var collectives = kernel{"collectives", func(r *haloranks.Rank, l *lap, memory []byte, _ []haloranks.Channel) {
	to, from := streams.View[float64](memory[:l.Bytes]), streams.View[float64](memory[l.Bytes:2*l.Bytes])
	for i := range from {
		from[i] = float64(r.Index(haloranks.All) + i)
		to[i] = from[i]
	}
	r.StartTimer()
	r.Barrier(haloranks.All)
	ok := true
	for i := int64(0); i < l.Rounds && ok; i++ {
		root := int(i%2) * (r.Size(haloranks.All) - 1)
		switch l.Work {
		case aBroadcast:
			ok = haloranks.Broadcast(r, to, root, haloranks.All)
		case aReduce:
			ok = haloranks.Reduce(r, to, from, haloranks.Max, root, haloranks.All)
		default:
			ok = haloranks.Allreduce(r, to, from, haloranks.Max, haloranks.All)
		}
	}
	r.StopTimer()
}, ofBench}

// Channels are numbered in the order in which measurement.round makes them.
var channelPingPong = kernel{"channel_ping_pong", func(
	r *haloranks.Rank, l *lap, memory []byte, ends []haloranks.Channel,
) {
	me := r.Index(haloranks.All)
	r.StartTimer()
	for i := int64(0); i < l.Rounds && me < 2; i++ {
		for turn := range 2 {
			if turn == me && !r.Send(ends[me], memory[l.Bytes:2*l.Bytes]) ||
				turn != me && r.Receive(ends[1-me], memory[:l.Bytes]) < 0 {
				return
			}
		}
	}
	r.StopTimer()
}, ofBench}

var channelOneWay = kernel{"channel_one_way", func(r *haloranks.Rank, l *lap, memory []byte, ends []haloranks.Channel) {
	me := r.Index(haloranks.All)
	r.StartTimer()
	r.Barrier(haloranks.All)
	for i := int64(0); i < l.Rounds && me < 2; i++ {
		if me == 0 && !r.Send(ends[0], memory[l.Bytes:2*l.Bytes]) ||
			me == 1 && r.Receive(ends[0], memory[:l.Bytes]) < 0 {
			return
		}
	}
	r.Barrier(haloranks.All)
	r.StopTimer()
}, ofBench}

// The kernels of overlap, by what they compute.
var overlapping = map[string]kernel{
	newton: {"overlap_newton", roundsOf(newtonOf), ofOverlap},
	copies: {"overlap_copy", roundsOf(copyOf), ofOverlap},
}

// roundsOf is the counterpart of rounds; compute does the given amount of work on the memory of a rank.
func roundsOf(computing func(own []byte) func(work int64)) hostFunc {
	return func(r *haloranks.Rank, l *lap, memory []byte, _ []haloranks.Channel) {
		n, late := r.Size(haloranks.All), int64(0)
		other := (r.Index(haloranks.All) + n/2) % n
		compute := computing(memory[4*l.Bytes:])
		w := r.CreateWindow(haloranks.All, memory[:l.Bytes])
		if l.Apart > 1 {
			place := int64(r.Index(haloranks.Device)) * l.Apart / int64(r.Size(haloranks.Device))
			late = l.Work / 16 * place / l.Apart * 16
		}
		r.StartTimer()
		r.Barrier(haloranks.All)
		for i := int64(0); i <= l.Rounds; i++ {
			switch i {
			case 0:
				compute(l.Work - late)
			case l.Rounds:
				compute(late)
			default:
				compute(l.Work)
			}
			if l.Bytes == 0 || i == l.Rounds {
				continue
			}
			r.PutNotify(w, other, 0, memory[l.Bytes:2*l.Bytes], 0)
			if !r.WaitNotifications(0, 1) {
				return
			}
		}
		r.StopTimer()
		r.FreeWindow(w)
	}
}

// chains is CHAINS of overlap.cu.
const chains = 4

// newtonOf is Newton of overlap.cu with one thread.
func newtonOf(own []byte) func(work int64) {
	number := streams.View[float64](own)
	number[0] = 2
	return func(work int64) {
		half := 0.5 * number[0]
		var y [chains]float64
		for k := range y {
			y[k] = 0.01 / float64(int(1)<<k)
		}
		for range work {
			for k := range y {
				y[k] *= 1.5 - half*y[k]*y[k]
			}
		}
		copy(number[1:], y[:])
	}
}

// copyOf is Copy of overlap.cu.
func copyOf(own []byte) func(work int64) {
	at, half := int64(0), int64(len(own)/2)
	return func(work int64) {
		if at+work > half {
			at = 0
		}
		copy(own[half+at:][:work], own[at:])
		at += work
	}
}
