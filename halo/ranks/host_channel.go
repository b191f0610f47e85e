package ranks

import "sync/atomic"

// hostChannel is a channel between ranks on host devices.
type hostChannel struct {
	channel
	first      uint64 // the number of the first message
	messages   [][]byte
	sent, read atomic.Uint64
}

func newHostChannels(all []channel, first uint64) []*hostChannel {
	made := make([]*hostChannel, len(all))
	for i, c := range all {
		made[i] = &hostChannel{channel: c, first: first, messages: make([][]byte, c.slots)}
		for k := range made[i].messages {
			made[i].messages[k] = make([]byte, 0, c.bytes)
		}
		made[i].sent.Store(first)
		made[i].read.Store(first)
	}
	return made
}

func (c *hostChannel) slot(position uint64) *[]byte {
	return &c.messages[position%uint64(len(c.messages))]
}
