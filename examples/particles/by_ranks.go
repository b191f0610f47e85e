package main

import (
	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo/ranks"
)

// Tags of notifications.
const (
	tagMigrants = iota
	tagState
)

// program is that of the ranks of a box.
func (b *box) program(o compare.Options) ranks.Program {
	return ranks.Program{Name: "particles", Source: source(o.Threads), Kernel: "particles", Threads: o.Threads, Host: func(r *ranks.Rank) { b.rank(r, o) }}
}

// byRanks is the method by ranks.
func (b *box) byRanks(w *ranks.World) compare.Method {
	return compare.ByRanks(w, func(steps int) []part {
		for i := range b.parts {
			b.parts[i].Steps = int64(steps)
		}
		return b.parts
	})
}

// neighbour is the twin of struct Neighbour of particles.cu.
type neighbour struct {
	rank       int // -1: none
	far        bool
	own, there int64 // segments
	list       int64 // of migrants
}

func (n neighbour) tellMigrants(r *ranks.Rank, w ranks.Window, b board) {
	if n.rank < 0 {
		return
	}
	if !n.far {
		r.Notify(n.rank, ranks.All, tagMigrants)
		return
	}
	bytes := header + *b.migrants(n.own, n.list).count*particleBytes
	r.PutNotify(w, n.rank, b.offset(n.there, n.list), b.bytes(n.own, n.list)[:bytes], tagMigrants)
}

func (n neighbour) tellState(r *ranks.Rank, w ranks.Window, b board) {
	if n.rank < 0 {
		return
	}
	if !n.far {
		r.Notify(n.rank, ranks.All, tagState)
		return
	}
	list, to, y := b.bytes(n.own, listState), b.offset(n.there, listState), header+8*b.Capacity
	bytes := 8 * *b.state(n.own, listState).count
	r.Put(w, n.rank, to, list[:header+bytes])
	r.PutNotify(w, n.rank, to+y, list[y:y+bytes], tagState)
}

// rank is the twin of kernel particles.
func (b *box) rank(r *ranks.Rank, o compare.Options) {
	q := ranks.Data[part](r)
	mine := b.board(r.Device())
	mine.part = q
	w := r.CreateWindow(ranks.All, mine.slots)
	n, local, me := int64(r.Size(ranks.Device)), int64(r.Index(ranks.Device)), r.Index(ranks.All)
	active := min(n, q.Segments)
	below, above := neighbour{rank: -1}, neighbour{rank: -1}
	var low, high int64
	neighbours := uint64(0)
	if local < active {
		low, high = q.Segments*local/active, q.Segments*(local+1)/active
		if q.has(low - 1) {
			below = neighbour{me - 1, low == 0, low, q.Segments, listBelow}
			if below.far {
				below.rank = me - int(local-active+1+n)
			}
			neighbours++
		}
		if q.has(high) {
			above = neighbour{me + 1, high == q.Segments, high - 1, -1, listAbove}
			if above.far {
				above.rank = me + int(n-local)
			}
			neighbours++
		}
	}
	r.StartTimer()
	for step := range q.Steps {
		if step > 0 && neighbours > 0 && !r.WaitNotifications(tagState, neighbours) {
			return
		}
		for s := low; s < high; s++ {
			mine.advance(s)
		}
		o.Pause()
		below.tellMigrants(r, w, mine)
		above.tellMigrants(r, w, mine)
		if neighbours > 0 && !r.WaitNotifications(tagMigrants, neighbours) {
			return
		}
		for s := low; s < high; s++ {
			mine.merge(s)
		}
		o.Pause()
		below.tellState(r, w, mine)
		above.tellState(r, w, mine)
		r.Flush(w)
	}
	r.StopTimer()
	r.FreeWindow(w)
}
