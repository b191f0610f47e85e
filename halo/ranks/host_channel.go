package ranks

import "sync/atomic"

// hostChannel is a channel between ranks on host devices.
type hostChannel struct {
	channel
	first      uint64 // the number of the first message
	messages   [][]byte
	sent, read atomic.Uint64
}

func newHostChannel(c channel) *hostChannel {
	made := &hostChannel{channel: c, messages: make([][]byte, c.slots)}
	for k := range made.messages {
		made.messages[k] = make([]byte, 0, c.bytes)
	}
	return made
}

// begin numbers messages from first on.
func (c *hostChannel) begin(first uint64) {
	c.first = first
	c.sent.Store(first)
	c.read.Store(first)
}

func (c *hostChannel) slot(position uint64) *[]byte {
	return &c.messages[position%uint64(len(c.messages))]
}

// put appends a message, for which there is room.
func (c *hostChannel) put(message []byte) {
	n := c.sent.Load()
	slot := c.slot(n)
	*slot = append((*slot)[:0], message...)
	c.sent.Store(n + 1)
}
