package litmus

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/halox/halox/halo/ranks"
)

// call is a rank on a CPU device with its slots: it does what the kernels of litmus.cu do, function by
// function.
type call struct {
	*ranks.Rank
	l            *litmus
	mine, source []byte
}

func hash(a, b int64) uint32 {
	h := uint32(a)*0x9e3779b1 ^ (uint32(b)+0x7f4a7c15)*0x85ebca77
	h ^= h >> 15
	h *= 0xc2b2ae3d
	h ^= h >> 13
	return h
}

func (c *call) pattern(rank int, round, at int64) byte {
	return byte(hash(c.l.Seed+int64(rank)*7919+round, at) % 251)
}

// faulty reports whether this rank should inject a fault now.
func (c *call) faulty(fault, round int64) bool {
	return c.l.Fault == fault && round == c.l.Where && c.Index(ranks.All) == 0
}

func (c *call) note(kind int64, from int, round, at, expected, came int64) {
	l := c.l
	if !atomic.CompareAndSwapUint64(&l.Wrong, 0, 1) {
		return
	}
	l.Kind, l.From, l.To = kind, int64(from), int64(c.Index(ranks.All))
	l.Round, l.At, l.Expected, l.Came = round, at, expected, came
}

// partners returns the rank that this rank puts to, and the one that puts to it.
func (c *call) partners() (to, from int) {
	n, each, me, local := c.Size(ranks.All), c.Size(ranks.Device), c.Index(ranks.All), c.Index(ranks.Device)
	if c.l.Near != 0 {
		return me - local + (local+1)%each, me - local + (local+each-1)%each
	}
	return (me + each) % n, (me + n - each) % n
}

// check compares received bytes with those that a rank put to an offset, and poisons them.
func (c *call) check(from int, round int64, want func(i int64) byte) {
	for i := range c.mine {
		if w := want(int64(i)); c.mine[i] != w {
			c.note(wrongByte, from, round, int64(i), int64(w), int64(c.mine[i]))
		}
		c.mine[i] = poison
	}
}

func (c *call) poison() {
	for i := range c.mine {
		c.mine[i] = poison
	}
	c.Barrier(ranks.All)
}

func (c *call) pieces() {
	me := c.Index(ranks.All)
	to, from := c.partners()
	w := c.CreateWindow(ranks.All, c.mine)
	c.poison()
	for t := range c.l.Rounds {
		offset, odd, most := t%alignments, t/alignments%alignments, c.l.Slot-2*alignments
		bytes := int64(hash(c.l.Seed, t) % 64)
		if t%4 == 0 {
			bytes = int64(hash(c.l.Seed, t) % uint32(most+1))
		}
		s := c.source[odd:][:bytes]
		for i := range s {
			s[i] = c.pattern(me, t, int64(i))
		}
		if c.l.Fault == flipped && t >= c.l.Where && me == 0 && bytes > 0 {
			s[bytes/2] ^= 1
		}
		if t > 0 && !c.WaitNotifications(credit, 1) {
			return
		}
		a, b := bytes/3, bytes-bytes/4
		c.Put(w, to, offset, s[:a])
		c.Put(w, to, offset+a, s[a:b])
		if c.faulty(dropped, t) {
			c.Put(w, to, offset+b, s[b:])
		} else {
			c.PutNotify(w, to, offset+b, s[b:], int(t%someTags))
		}
		if !c.WaitNotifications(int(t%someTags), 1) {
			return
		}
		c.Flush(w)
		c.check(from, t, func(i int64) byte {
			if i >= offset && i < offset+bytes {
				return c.pattern(from, t, i-offset)
			}
			return poison
		})
		c.Notify(from, ranks.All, credit)
	}
	c.FreeWindow(w)
}

func (c *call) counts() {
	me := c.Index(ranks.All)
	to, from := c.partners()
	sent := func(rank int, t int64, tag int) uint64 {
		return uint64(hash(c.l.Seed+int64(rank), t*counted+int64(tag)) % 4)
	}
	for t := range c.l.Rounds {
		for tag := range counted {
			n := sent(me, t, tag)
			switch faulty := c.faulty(dropped, t) && tag == 5; {
			case faulty && n > 0:
				n--
			case faulty:
				n = 1
			}
			for range n {
				c.Notify(to, ranks.All, tag)
			}
		}
		for tag := counted - 1; tag >= 0; tag-- {
			if !c.WaitNotifications(tag, sent(from, t, tag)) {
				return
			}
		}
		if !c.Barrier(ranks.All) {
			return
		}
		for tag := range counted {
			if c.TestNotifications(tag, 1) {
				c.note(wrongCount, from, t, int64(tag), 0, 1)
			}
		}
		if !c.Barrier(ranks.All) {
			return
		}
	}
}

func (c *call) barriers() {
	me, each := c.Index(ranks.All), c.Size(ranks.Device)
	first := me - c.Index(ranks.Device)
	set := func(v int64) { binary.NativeEndian.PutUint64(c.mine, uint64(v)) }
	set(0)
	w := c.CreateWindow(ranks.All, c.mine)
	theirs := make([]byte, 8)
	for t := range c.l.Rounds {
		set(t + 1)
		if c.faulty(flipped, t) {
			set(t)
		}
		comm := ranks.All
		if t%2 == 1 {
			comm = ranks.Device
		}
		if !c.Barrier(comm) {
			return
		}
		for i := range c.Size(comm) {
			other := i
			if comm == ranks.Device {
				other = first + (me-first+i)%each
			}
			c.Get(w, other, 0, theirs)
			c.Flush(w)
			if v := int64(binary.NativeEndian.Uint64(theirs)); v != t+1 {
				c.note(early, other, t, 0, t+1, v)
			}
		}
		if !c.Barrier(ranks.All) {
			return
		}
	}
	c.FreeWindow(w)
}

func (c *call) allToOne() {
	me, n := c.Index(ranks.All), c.Size(ranks.All)
	w := c.CreateWindow(ranks.All, c.mine)
	c.poison()
	for t := range c.l.Rounds {
		one, tag := int(t)%n, int(t%someTags)
		s := c.source[:word]
		for i := range s {
			s[i] = c.pattern(me, t, int64(i))
		}
		if c.l.Fault == flipped && t >= c.l.Where && me == 0 {
			s[3] ^= 1
		}
		if !c.faulty(dropped, t) {
			c.PutNotify(w, one, int64(me*word), s, tag)
		}
		if me == one {
			if !c.WaitNotifications(tag, uint64(n)) {
				return
			}
			for i := range c.mine[:n*word] {
				from := i / word
				if want := c.pattern(from, t, int64(i%word)); c.mine[i] != want {
					c.note(wrongByte, from, t, int64(i), int64(want), int64(c.mine[i]))
				}
				c.mine[i] = poison
			}
		}
		if !c.Barrier(ranks.All) {
			return
		}
	}
	c.FreeWindow(w)
}
