// Package trial compares the output of devices with that of the host, before it is timed.
package trial

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/streams"
)

// Mirror is a span with a copy in host memory; pinned memory is its own copy.
type Mirror struct {
	span, host streams.Span
	bytes      []byte // the copy of a span of another process
}

// NewMirror allocates the copy without filling it.
func NewMirror(d *streams.Device, span streams.Span, open *streams.Resources) (Mirror, error) {
	if span.Memory.Pinned() {
		return Mirror{span: span, host: span}, nil
	}
	m := open.AllocPinned(d, span.Length)
	if err := open.Err(); err != nil {
		return Mirror{}, err
	}
	return Mirror{span: span, host: m.All()}, nil
}

// mirrorAt is NewMirror on the device of a stream; without a stream the span is in another process.
func mirrorAt(s *streams.Stream, span streams.Span, open *streams.Resources) (Mirror, error) {
	if s == nil {
		return Mirror{bytes: make([]byte, span.Length)}, nil
	}
	return NewMirror(s.Device(), span, open)
}

// Bytes returns the copy.
func (m Mirror) Bytes() []byte {
	if m.bytes != nil {
		return m.bytes
	}
	return m.host.Memory.Bytes()[m.host.Offset : m.host.Offset+m.host.Length]
}

// Upload queues a copy from the host to the span.
func (m Mirror) Upload(s *streams.Stream) error { return m.copy(s, m.span, m.host) }

// Download queues a copy from the span to the host.
func (m Mirror) Download(s *streams.Stream) error { return m.copy(s, m.host, m.span) }

func (m Mirror) copy(s *streams.Stream, dst, src streams.Span) error {
	if m.span.Memory == m.host.Memory {
		return nil
	}
	return s.Copy(dst, src)
}

// maxBytes is the maximum number of compared bytes: the extent of the written or read memory, including gaps.
const maxBytes = 64 << 20

// Stale is the content of bytes that a job has not written.
const Stale = 0xa5

// Trial is the expected output of a job.
type Trial struct {
	to, from       *streams.Stream // mirrors of the written and the read memory
	target, source Mirror
	want           []byte
}

// New fills the memory to read with numbers, and define computes the expected output on the host over stale bytes. It
// returns nil if the output spans more than maxBytes. A stream is nil if its memory is in another process, which has
// the same trial.
func New(to, from *streams.Stream, written, read streams.Span, open *streams.Resources,
	define func(dst, src []byte) error) (*Trial, error) {
	if written.Length > maxBytes || read.Length > maxBytes {
		return nil, nil
	}
	t := &Trial{to: to, from: from, want: bytes.Repeat([]byte{Stale}, int(written.Length))}
	var err error
	if t.source, err = mirrorAt(from, read, open); err != nil {
		return nil, err
	}
	if t.target, err = mirrorAt(to, written, open); err != nil {
		return nil, err
	}
	rand.NewChaCha8([32]byte{}).Read(t.source.Bytes())
	return t, define(t.want, t.source.Bytes())
}

// Want returns the expected output.
func (t *Trial) Want() []byte { return t.want }

// Do runs a job, with a function that queues it on a stream of the device that it writes, and compares all bytes that
// it may write, in the process that has them.
func (t *Trial) Do(queue func(*streams.Stream) error) error {
	got := t.target.Bytes()
	for i := range got {
		got[i] = Stale
	}
	if t.from != nil {
		if err := errors.Join(t.source.Upload(t.from), t.from.Sync(timing.Limit)); err != nil {
			return err
		}
	}
	if t.to == nil {
		return errors.Join(queue(nil), t.from.Sync(timing.Limit))
	}
	for _, step := range []func(*streams.Stream) error{t.target.Upload, queue, t.target.Download} {
		if err := step(t.to); err != nil {
			return err
		}
	}
	if err := t.to.Sync(timing.Limit); err != nil || bytes.Equal(got, t.want) {
		return err
	}
	for i := range got {
		if got[i] != t.want[i] {
			return fmt.Errorf("byte %d of %d is %#x, must be %#x", i, len(got), got[i], t.want[i])
		}
	}
	return nil
}
