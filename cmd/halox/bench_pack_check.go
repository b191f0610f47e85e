package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/halox/halox/streams"
)

// maxCompared is how many bytes a layout may span, gaps included, whose packing
// is compared.
const maxCompared = 64 << 20

// newTrial returns what the case's engines should write. It returns nil for a layout
// that spans too much.
func (c *packCase) newTrial() (*trial, error) {
	l := c.message.Layout
	user, packed := c.place.Data, c.packed
	user.Offset, user.Length = c.place.Origin+l.TrueLB(), l.TrueUB()-l.TrueLB()
	if user.Length > maxCompared || packed.Length > maxCompared {
		return nil, nil
	}
	s, err := c.device.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	c.resources.Add(s)
	if c.unpack {
		return newTrial(s, s, user, packed, &c.resources, func(dst, src []byte) error { return l.Unpack(dst, -l.TrueLB(), src) })
	}
	return newTrial(s, s, packed, user, &c.resources, func(dst, src []byte) error { return l.Pack(dst, src, -l.TrueLB()) })
}

// trial is what a job should write, to be compared with what it writes.
type trial struct {
	to, from       *streams.Stream // of the devices that are written and read
	target, source mirror
	want           []byte
}

// stale is what lies where a job has not written.
const stale = 0xa5

// newTrial makes numbers for what is read, and has define work out on the host what
// comes of them where all was stale.
func newTrial(to, from *streams.Stream, written, read streams.Span, open *streams.Resources, define func(dst, src []byte) error) (*trial, error) {
	t := &trial{to: to, from: from, want: bytes.Repeat([]byte{stale}, int(written.Length))}
	var err error
	if t.source, err = newMirror(from.Device(), read, open); err != nil {
		return nil, err
	}
	if t.target, err = newMirror(to.Device(), written, open); err != nil {
		return nil, err
	}
	rand.NewChaCha8([32]byte{}).Read(t.source.bytes())
	return t, define(t.want, t.source.bytes())
}

// queuer is the part of a job that a trial needs.
type queuer interface {
	Queue(s *streams.Stream) error
}

// do has a job write, which is queued on the stream of the device that is written, and
// compares all bytes that it may write to.
func (t *trial) do(j queuer) error {
	got := t.target.bytes()
	for i := range got {
		got[i] = stale
	}
	if err := errors.Join(t.source.upload(t.from), t.from.Sync(waitLimit)); err != nil {
		return err
	}
	for _, step := range []func(*streams.Stream) error{t.target.upload, j.Queue, t.target.download} {
		if err := step(t.to); err != nil {
			return err
		}
	}
	if err := t.to.Sync(waitLimit); err != nil || bytes.Equal(got, t.want) {
		return err
	}
	for i := range got {
		if got[i] != t.want[i] {
			return fmt.Errorf("byte %d of %d that it wrote is %#x and should be %#x", i, len(got), got[i], t.want[i])
		}
	}
	return nil
}

// mirror is a span with a copy of it where the CPU sees it; pinned memory is its
// own.
type mirror struct{ span, host streams.Span }

func newMirror(d *streams.Device, span streams.Span, open *streams.Resources) (mirror, error) {
	if span.Memory.Pinned() {
		return mirror{span, span}, nil
	}
	m, err := d.AllocPinned(span.Length)
	if err != nil {
		return mirror{}, err
	}
	open.Add(m)
	return mirror{span, m.All()}, nil
}

// bytes returns the copy.
func (m mirror) bytes() []byte {
	return m.host.Memory.Bytes()[m.host.Offset : m.host.Offset+m.host.Length]
}

// upload queues that the span becomes its copy, download the reverse.
func (m mirror) upload(s *streams.Stream) error   { return m.copy(s, m.span, m.host) }
func (m mirror) download(s *streams.Stream) error { return m.copy(s, m.host, m.span) }

func (m mirror) copy(s *streams.Stream, dst, src streams.Span) error {
	if m.span.Memory == m.host.Memory {
		return nil
	}
	return s.Copy(dst, src)
}
