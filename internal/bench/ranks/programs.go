package ranks

import (
	_ "embed"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed bench.cu
var source string

// lap is struct Lap of bench.cu.
type lap struct {
	Memory                    uint64
	Bytes, Rounds, Comm, Work int64
	First                     int64
	Apart                     int64
}

// kernel is a kernel of bench.cu and its twin, which gets a rank's area of memory, and the channels of the world.
type kernel struct {
	name string
	host func(r *haloranks.Rank, l *lap, memory []byte, ends []haloranks.Channel)
}

// program is a kernel over memory of the devices and some channels, which are there when it runs, with so many threads a
// rank.
func (k kernel) program(threads int, memory []*streams.Memory, ends []haloranks.Channel) haloranks.Program {
	return haloranks.Program{
		Name: k.name, Source: kernels.Source{Name: "bench.cu", Text: source, Mirrors: []kernels.Mirror{{Name: "Lap", Value: lap{}}}}, Kernel: k.name, Threads: threads,
		Host: func(r *haloranks.Rank) {
			l := haloranks.Data[lap](r)
			k.host(r, l, memory[r.Device()].Bytes()[4*l.Bytes*int64(r.Index(haloranks.Device)):][:4*l.Bytes], ends)
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
}}

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
}}

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
}}

var barriers = kernel{"barriers", func(r *haloranks.Rank, l *lap, _ []byte, _ []haloranks.Channel) {
	r.StartTimer()
	r.Barrier(haloranks.All)
	for range l.Rounds {
		if !r.Barrier(haloranks.Comm(l.Comm)) {
			return
		}
	}
	r.StopTimer()
}}

// What collectives do, by work.
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
}}

// The numbers of channels are those in which measurement.round makes them.
var channelPingPong = kernel{"channel_ping_pong", func(r *haloranks.Rank, l *lap, memory []byte, ends []haloranks.Channel) {
	me := r.Index(haloranks.All)
	r.StartTimer()
	for i := int64(0); i < l.Rounds && me < 2; i++ {
		for turn := range 2 {
			if turn == me && !r.Send(ends[me], memory[l.Bytes:2*l.Bytes]) || turn != me && r.Receive(ends[1-me], memory[:l.Bytes]) < 0 {
				return
			}
		}
	}
	r.StopTimer()
}}

var channelOneWay = kernel{"channel_one_way", func(r *haloranks.Rank, l *lap, memory []byte, ends []haloranks.Channel) {
	me := r.Index(haloranks.All)
	r.StartTimer()
	r.Barrier(haloranks.All)
	for i := int64(0); i < l.Rounds && me < 2; i++ {
		if me == 0 && !r.Send(ends[0], memory[l.Bytes:2*l.Bytes]) || me == 1 && r.Receive(ends[0], memory[:l.Bytes]) < 0 {
			return
		}
	}
	r.Barrier(haloranks.All)
	r.StopTimer()
}}

var overlap = kernel{"overlap", func(r *haloranks.Rank, l *lap, memory []byte, _ []haloranks.Channel) {
	n := r.Size(haloranks.All)
	other := (r.Index(haloranks.All) + n/2) % n
	w := r.CreateWindow(haloranks.All, memory[:l.Bytes])
	x := 1.0
	r.StartTimer()
	r.Barrier(haloranks.All)
	compute := func(work int64) {
		for range work {
			x = 0.5 * (x + 2/x)
		}
	}
	if l.Apart > 1 {
		compute(l.Work * (int64(r.Index(haloranks.Device)) * l.Apart / int64(r.Size(haloranks.Device))) / l.Apart)
	}
	for range l.Rounds {
		compute(l.Work)
		if l.Bytes == 0 {
			continue
		}
		r.PutNotify(w, other, 0, memory[l.Bytes:2*l.Bytes], 0)
		if !r.WaitNotifications(0, 1) {
			return
		}
	}
	r.StopTimer()
	if x < 0 {
		r.Notify(0, haloranks.All, 1)
	}
	r.FreeWindow(w)
}}
