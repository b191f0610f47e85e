package streams

import (
	"errors"
	"time"
)

// Feed is memory of a device that the host fills repeatedly while the device works. Fillings use two pinned blocks
// alternately, so the host waits only until the filling before the last has been copied. A filling allocates nothing.
type Feed struct {
	resources Resources
	memory    *Memory
	host      [2]*Memory
	copied    [2]*Event // what host held has been copied: it may change
	turn      int
}

// NewFeed allocates the memory, whose content is undefined. Close frees it.
func NewFeed(d *Device, bytes int64) (*Feed, error) {
	f := &Feed{}
	f.memory = f.resources.Alloc(d, bytes)
	for i := range f.host {
		f.host[i], f.copied[i] = f.resources.AllocPinned(d, bytes), f.resources.NewEvent(d)
	}
	if err := f.resources.Err(); err != nil {
		return nil, errors.Join(err, f.resources.Close())
	}
	return f, nil
}

// Memory returns the memory of the device.
func (f *Feed) Memory() *Memory { return f.memory }

// Next returns the bytes to fill next, as many as the memory has, with any content. It waits for at most limit until
// the device has copied what they held before.
func (f *Feed) Next(limit time.Duration) ([]byte, error) {
	f.turn = 1 - f.turn
	return f.host[f.turn].Bytes(), f.copied[f.turn].Sync(limit)
}

// Queue queues a copy of the bytes [from, to) of what Next returned last to the same place of the memory.
func (f *Feed) Queue(s *Stream, from, to int64) error {
	host := f.host[f.turn]
	if err := s.CopyAs(OtherWork, f.memory.Span(from, to-from), host.Span(from, to-from)); err != nil {
		return err
	}
	return s.Record(f.copied[f.turn])
}

// Close frees the memory. Nothing queued may still use it. A second call does nothing.
func (f *Feed) Close() error { return f.resources.Close() }
