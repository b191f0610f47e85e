package halo

import (
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/streams"
)

// Streams is a stream for every subdomain of a placement, by rank, as Start and
// Wait take them; nil for those of other processes.
type Streams []*streams.Stream

// NewStreams makes a stream for every subdomain, on its device.
func (p *Placement) NewStreams() (Streams, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	var at Streams
	for _, d := range p.Devices {
		if d == nil {
			at = append(at, nil)
			continue
		}
		s, err := d.NewStream(streams.Normal)
		if err != nil {
			return nil, errors.Join(err, at.Close())
		}
		at = append(at, s)
	}
	return at, nil
}

// Launch queues a kernel on every stream, by rank, and nothing where it is nil.
func (at Streams) Launch(byRank []*streams.Kernel) error {
	if len(byRank) != len(at) {
		return fmt.Errorf("halo: %d kernels for %d subdomains", len(byRank), len(at))
	}
	for rank, k := range byRank {
		if k == nil || at[rank] == nil {
			continue
		}
		if err := at[rank].Launch(k); err != nil {
			return err
		}
	}
	return nil
}

// Sync makes the host wait until every stream has done all that was queued, for
// at most limit each.
func (at Streams) Sync(limit time.Duration) error {
	for _, s := range at {
		if s == nil {
			continue
		}
		if err := s.Sync(limit); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the streams. Those of several devices are waited for together.
func (at Streams) Close() error {
	var all streams.Resources
	for _, s := range at {
		if s != nil {
			all.Add(s)
		}
	}
	return all.Close()
}
