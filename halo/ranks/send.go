package ranks

// Send sends a message over a channel that begins at this rank: a multiple of 4 bytes, up to what the channel takes. It
// waits while the receiver has as many messages to read as the channel has slots, and returns
// false if the wait timed out or the run has ended. The send of a kernel may wait once slots / 2 + 1 messages are unread.
func (r *Rank) Send(c Channel, from []byte) bool {
	h := r.channel(c, true)
	if h == nil || !r.check(len(from) <= h.bytes && len(from)%4 == 0, failure{why: badMessage, expected: int64(h.bytes), came: int64(len(from)), detail: int64(c.number)}) {
		return false
	}
	n := h.sent.Load()
	if !r.await(func() bool { return n-h.read.Load() < uint64(h.slots) }) {
		r.fail(failure{why: noRoom, expected: int64(h.slots), came: int64(h.to), detail: int64(c.number)})
		return false
	}
	if process := r.state.away(h.to); process >= 0 {
		h.sent.Store(n + 1)
		r.post(process, letter{what: letterSent, to: int64(h.to), slot: int64(c.number)}, from)
		return !r.Failed()
	}
	h.put(from)
	return true
}

// Receive waits for the next message of a channel that ends at this rank, copies it to memory with room for the longest
// message of the channel, and returns its bytes, or -1 if the wait timed out or the run has ended. Messages come in the order in
// which they were sent.
func (r *Rank) Receive(c Channel, to []byte) int {
	h := r.channel(c, false)
	if h == nil || !r.check(len(to) >= h.bytes, failure{why: badResult, expected: int64(h.bytes), came: int64(len(to))}) {
		return -1
	}
	n := h.read.Load()
	if !r.await(func() bool { return h.sent.Load() != n }) {
		r.fail(failure{why: noMessage, expected: int64(n - h.first + 1), came: int64(h.from), detail: int64(c.number)})
		return -1
	}
	bytes := copy(to, *h.slot(n))
	h.read.Store(n + 1)
	if process := r.state.away(h.from); process >= 0 {
		r.post(process, letter{what: letterRead, to: int64(h.from), slot: int64(c.number), n: int64(n + 1)}, nil)
	}
	return bytes
}

// channel returns a channel of which this rank is one end, or nil.
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
