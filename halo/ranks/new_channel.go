package ranks

import (
	"fmt"

	"github.com/halox/halox/streams"
)

// NewChannel makes a channel before a run, which all later runs then have: from one rank of the world to another, or
// itself, with room for so many messages that were not read, a power of two, of up to so many bytes each, a multiple of 4
// up to MaxMessage. Every message takes as long as the longest, and twice its bytes. A rank is at an end of up to
// 16 channels; both ends of one to itself count. All processes make the same channels. The kernel gets it by its number, as ranks::Channel{c.ID()}.
func (w *World) NewChannel(from, to, slots, bytes int) (Channel, error) {
	none := Channel{-1}
	refuse := func(format string, args ...any) (Channel, error) {
		return none, fmt.Errorf("ranks: %s: a channel of %s", w.program.Name, fmt.Sprintf(format, args...))
	}
	if from < 0 || from >= w.Size() || to < 0 || to >= w.Size() {
		return refuse("rank %d to %d, of %d", from, to, w.Size())
	}
	if slots < 1 || slots > 1<<16 || slots&(slots-1) != 0 {
		return refuse("%d slots; a power of two up to %d is possible", slots, 1<<16)
	}
	if bytes < 4 || bytes > MaxMessage || bytes%4 != 0 {
		return refuse("messages of %d bytes; a multiple of 4 up to %d is possible", bytes, MaxMessage)
	}
	if w.running {
		return refuse("a world that is running")
	}
	ends := map[int]int{from: 1}
	ends[to]++
	for _, c := range w.channels {
		for _, rank := range []int{c.from, c.to} {
			if _, here := ends[rank]; here {
				ends[rank]++
			}
		}
	}
	for rank, n := range ends {
		if n > maxEnds {
			return refuse("rank %d, which has %d ends already", rank, maxEnds)
		}
	}
	w.channels = append(w.channels, channel{from: from, to: to, slots: slots, bytes: bytes})
	return Channel{len(w.channels) - 1}, nil
}

// layChannels allocates the channels that were made since the last run, and has all devices know of them.
func (w *World) layChannels() error {
	if w.laid == len(w.channels) {
		return nil
	}
	fresh := w.channels[w.laid:]
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
	for _, m := range w.members {
		if err := w.layEnds(m); err != nil {
			return err
		}
	}
	return nil
}

// layRings allocates what channels have on a device. The memory begins with the credits of channels that begin there.
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

// gatherRings gets the addresses of channels from the processes whose devices they are on.
func (w *World) gatherRings(fresh []channel, err error) error {
	var mine []uint64
	for _, c := range fresh {
		mine = append(mine, c.ring, c.credit)
	}
	all, err := gatherAll(w, "lay channels", mine, err)
	if err != nil {
		return err
	}
	if len(all) != len(mine)*(w.owners[len(w.owners)-1]+1) {
		return fmt.Errorf("ranks: %s: other processes have made other channels", w.program.Name)
	}
	for k := range fresh {
		c := &fresh[k]
		c.ring = all[len(mine)*w.owners[c.to/w.ranks]+2*k]
		c.credit = all[len(mine)*w.owners[c.from/w.ranks]+2*k+1]
	}
	return nil
}

// layEnds writes the ends of the ranks of a device to it.
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
		end := channelEnd{ring: c.ring, credit: c.credit, first: w.first, slots: uint32(c.slots), words: uint32(c.bytes / 4)}
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
	return m.stream.Sync(w.options.Limit)
}
