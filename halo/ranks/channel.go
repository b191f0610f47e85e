package ranks

import (
	"fmt"

	"github.com/halox/halox/streams"
)

// Channel is a stream of small messages from one rank to another.
type Channel struct{ number int }

// MaxMessage is the maximum size of a message of a channel, in bytes.
const MaxMessage = 4096

// ID returns the number of the ranks::Channel in kernels.
func (c Channel) ID() int { return c.number }

// Send sends a message over a channel that begins at this rank: a multiple of 4 bytes, up to the channel's
// maximum. It waits while all slots of the channel have unread messages, and returns false if the wait timed
// out or the run has ended. In kernels, send may already wait while slots / 2 + 1 messages are unread.
func (r *Rank) Send(c Channel, from []byte) bool {
	h := r.channel(c, true)
	if h == nil ||
		!r.check(
			len(from) <= h.bytes && len(from)%4 == 0,
			failure{why: badMessage, expected: int64(h.bytes), came: int64(len(from)), detail: int64(c.number)},
		) {
		return false
	}
	n := h.sent.Load()
	if !r.await(func() bool { return n-h.read.Load() < uint64(h.slots) }) {
		r.fail(failure{why: noRoom, expected: int64(h.slots), came: int64(h.to), detail: int64(c.number)})
		return false
	}
	if process := r.state.processOf(h.to); process >= 0 {
		h.sent.Store(n + 1)
		r.post(process, message{what: msgSent, to: int64(h.to), slot: int64(c.number)}, from)
		return !r.Failed()
	}
	h.put(from)
	return true
}

// Receive waits for the next message of a channel that ends at this rank, copies it to memory large enough
// for the longest message of the channel, and returns its bytes, or -1 if the wait timed out or the run has
// ended. Messages arrive in the order in which they were sent.
func (r *Rank) Receive(c Channel, to []byte) int {
	h := r.channel(c, false)
	if h == nil ||
		!r.check(len(to) >= h.bytes, failure{why: badResult, expected: int64(h.bytes), came: int64(len(to))}) {
		return -1
	}
	n := h.read.Load()
	if !r.await(func() bool { return h.sent.Load() != n }) {
		r.fail(failure{why: noMessage, expected: int64(n - h.first + 1), came: int64(h.from), detail: int64(c.number)})
		return -1
	}
	bytes := copy(to, *h.slot(n))
	h.read.Store(n + 1)
	if process := r.state.processOf(h.from); process >= 0 {
		r.post(process, message{what: msgRead, to: int64(h.from), slot: int64(c.number), n: int64(n + 1)}, nil)
	}
	return bytes
}

// channel returns a channel that begins or ends at this rank, or nil.
func (r *Rank) channel(c Channel, sends bool) *hostChannel {
	if r.Failed() {
		return nil
	}
	wrong := failure{why: badChannel, came: int64(c.number)}
	if sends {
		wrong.expected = 1
	}
	if !r.check(c.number >= 0 && c.number < len(r.state.channels), wrong) {
		return nil
	}
	h := r.state.channels[c.number]
	end := h.to
	if sends {
		end = h.from
	}
	if !r.check(end == r.Index(All), wrong) {
		return nil
	}
	return h
}

// NewChannel makes a channel before a run, for all later runs: from one rank of the world to another, or to
// itself. slots is the number of messages that may be unread, a power of two; bytes is the maximum size of a
// message, a multiple of 4 up to MaxMessage. Every message takes as long as the longest, and twice its bytes.
// A rank may be at up to 16 ends of channels, including both ends of one to itself. Kernels use the channel
// as ranks::Channel{c.ID()}.
//
// All processes call it, for the same channel; if requests differ, all return an error that has both.
func (w *World) NewChannel(from, to, slots, bytes int) (Channel, error) {
	c := channel{from: from, to: to, slots: slots, bytes: bytes}
	free := w.use.TryLock()
	if free {
		defer w.use.Unlock()
	}
	what := fmt.Sprintf(
		"make channel %d from rank %d to rank %d, %d slots of %d bytes", len(w.channels), from, to, slots, bytes,
	)
	if err := w.agree(what, w.checkChannel(c, free)); err != nil {
		return Channel{-1}, err
	}
	w.channels = append(w.channels, c)
	return Channel{len(w.channels) - 1}, nil
}

// checkChannel returns an error if a channel cannot be made.
func (w *World) checkChannel(c channel, free bool) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("ranks: %s: channel: %s", w.program.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case c.from < 0 || c.from >= w.Size() || c.to < 0 || c.to >= w.Size():
		return wrong("ranks must be less than %d, got %d and %d", w.Size(), c.from, c.to)
	case c.slots < 1 || c.slots > 1<<16 || c.slots&(c.slots-1) != 0:
		return wrong("slots must be a power of two, at most %d, got %d", 1<<16, c.slots)
	case c.bytes < 4 || c.bytes > MaxMessage || c.bytes%4 != 0:
		return wrong("bytes must be a multiple of 4, at most %d, got %d", MaxMessage, c.bytes)
	}
	if err := w.usable(free); err != nil {
		return err
	}
	ends := map[int]int{c.from: 1}
	ends[c.to]++
	for _, other := range w.channels {
		for _, rank := range []int{other.from, other.to} {
			if _, here := ends[rank]; here {
				ends[rank]++
			}
		}
	}
	for rank, n := range ends {
		if n > maxEnds {
			return wrong("rank %d already has %d ends of channels", rank, maxEnds)
		}
	}
	return nil
}

// layChannels allocates the channels made since the last run, and copies the ends of all to the devices.
func (w *World) layChannels() error {
	if fresh := w.channels[w.laid:]; len(fresh) > 0 {
		var err error
		for _, m := range w.members {
			if err == nil {
				err = w.layRings(m, fresh)
			}
		}
		if err := w.gatherRings(fresh, err); err != nil {
			return err
		}
		w.laid = len(w.channels)
	}
	if w.known == len(w.channels) { // otherwise they are new, or the previous run failed here
		return nil
	}
	for _, m := range w.members {
		if err := w.layEnds(m); err != nil {
			return err
		}
	}
	w.known = len(w.channels)
	return nil
}

// layRings allocates the rings and credits of channels on a device, credits of channels that begin there
// first.
func (w *World) layRings(m *member, fresh []channel) error {
	credits, all := int64(0), int64(0)
	for _, c := range fresh {
		if c.from/w.ranks == m.index {
			credits += 8
		}
		if c.to/w.ranks == m.index {
			all += 8 * int64(c.slots*c.words())
		}
	}
	credits = (credits + lineBytes - 1) / lineBytes * lineBytes
	if all += credits; all == 0 {
		return nil
	}
	memory, err := m.device.Alloc(all)
	if err != nil {
		return err
	}
	w.resources.Add(memory)
	m.rings = append(m.rings, memory)
	credit, ring := memory.Address(), memory.Address()+uint64(credits)
	for k := range fresh {
		if c := &fresh[k]; c.from/w.ranks == m.index {
			c.credit = credit
			credit += 8
		}
		if c := &fresh[k]; c.to/w.ranks == m.index {
			c.ring = ring
			ring += uint64(8 * c.slots * c.words())
		}
	}
	return nil
}

// gatherRings gets the addresses of channels from the processes of their devices.
func (w *World) gatherRings(fresh []channel, err error) error {
	var mine []uint64
	for _, c := range fresh {
		mine = append(mine, c.ring, c.credit)
	}
	gathered, err := gather(w, "lay channels", mine, err)
	if err != nil {
		return err
	}
	for k := range fresh {
		c := &fresh[k]
		c.ring = gathered[w.owners[c.to/w.ranks]][2*k]
		c.credit = gathered[w.owners[c.from/w.ranks]][2*k+1]
	}
	return nil
}

// layEnds copies the channel ends of the ranks of a device to it.
func (w *World) layEnds(m *member) error {
	all := make([]channelEnd, w.ranks*maxEnds)
	for i := range all {
		all[i].key = -1
	}
	add := func(rank int, end channelEnd) {
		if rank/w.ranks != m.index {
			return
		}
		at := rank % w.ranks * maxEnds
		for all[at].key >= 0 {
			at++
		}
		all[at] = end
	}
	for n, c := range w.channels {
		end := channelEnd{
			ring: c.ring, credit: c.credit, first: w.first, slots: uint32(c.slots), words: uint32(c.bytes / 4),
		}
		end.key, end.peer = int32(2*n+1), int32(c.to)
		add(c.from, end)
		end.key, end.peer = int32(2*n), int32(c.from)
		add(c.to, end)
	}
	from, err := streams.Upload(m.device, all)
	if err != nil {
		return err
	}
	defer from.Close()
	if m.ends == nil {
		if m.ends, err = m.device.Alloc(from.Size()); err != nil {
			return err
		}
		w.resources.Add(m.ends)
	}
	if err := m.stream.Copy(m.ends.All(), from.All()); err != nil {
		return err
	}
	return m.stream.Sync(w.grace)
}
