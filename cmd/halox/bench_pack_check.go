package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/halox/halox/streams"
)

// mostCompared is how many bytes a layout may span, gaps included, whose packing
// is compared.
const mostCompared = 64 << 20

// trial is what a job should write, to be compared with what it writes.
type trial struct {
	stream *streams.Stream
	target mirror
	want   []byte
}

// stale is what lies where a job has not written.
const stale = 0xa5

// newTrial fills what is read in a case with numbers, and works out on the host
// what comes of it. It returns nil for a layout that spans too much.
func newTrial(c *packCase) (*trial, error) {
	l := c.cargo.Layout
	user, packed := c.place.Data, c.packed
	user.Offset, user.Length = c.place.Origin+l.TrueLB(), l.TrueUB()-l.TrueLB()
	if user.Length > mostCompared || packed.Length > mostCompared {
		return nil, nil
	}
	read, written := user, packed
	if c.unpack {
		read, written = packed, user
	}
	source, err := newMirror(c, read)
	if err != nil {
		return nil, err
	}
	t := &trial{want: bytes.Repeat([]byte{stale}, int(written.Length))}
	if t.target, err = newMirror(c, written); err != nil {
		return nil, err
	}
	if t.stream, err = c.device.NewStream(streams.Normal); err != nil {
		return nil, err
	}
	c.Add(t.stream)
	rand.NewChaCha8([32]byte{}).Read(source.bytes())
	if err := errors.Join(source.upload(t.stream), t.stream.Sync(waitLimit)); err != nil {
		return nil, err
	}
	if c.unpack {
		return t, l.Unpack(t.want, -l.TrueLB(), source.bytes())
	}
	return t, l.Pack(t.want, source.bytes(), -l.TrueLB())
}

// queuer is the part of a job that a trial needs.
type queuer interface {
	Queue(s *streams.Stream) error
}

// do has a job write and compares all bytes that it may write to.
func (t *trial) do(j queuer) error {
	got := t.target.bytes()
	for i := range got {
		got[i] = stale
	}
	for _, step := range []func(*streams.Stream) error{t.target.upload, j.Queue, t.target.download} {
		if err := step(t.stream); err != nil {
			return err
		}
	}
	if err := t.stream.Sync(waitLimit); err != nil || bytes.Equal(got, t.want) {
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

func newMirror(c *packCase, span streams.Span) (mirror, error) {
	if span.Memory.Pinned() {
		return mirror{span, span}, nil
	}
	m, err := c.device.AllocPinned(span.Length)
	if err != nil {
		return mirror{}, err
	}
	c.Add(m)
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
