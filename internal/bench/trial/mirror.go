package trial

import "github.com/halox/halox/streams"

// Mirror is a span with a copy of it where the CPU sees it; pinned memory is its own.
type Mirror struct{ span, host streams.Span }

// NewMirror makes the copy, whose bytes are not those of the span yet.
func NewMirror(d *streams.Device, span streams.Span, open *streams.Resources) (Mirror, error) {
	if span.Memory.Pinned() {
		return Mirror{span, span}, nil
	}
	m, err := d.AllocPinned(span.Length)
	if err != nil {
		return Mirror{}, err
	}
	open.Add(m)
	return Mirror{span, m.All()}, nil
}

// Bytes returns the copy.
func (m Mirror) Bytes() []byte {
	return m.host.Memory.Bytes()[m.host.Offset : m.host.Offset+m.host.Length]
}

// Upload queues that the span becomes its copy.
func (m Mirror) Upload(s *streams.Stream) error { return m.copy(s, m.span, m.host) }

// Download queues that the copy becomes what the span is.
func (m Mirror) Download(s *streams.Stream) error { return m.copy(s, m.host, m.span) }

func (m Mirror) copy(s *streams.Stream, dst, src streams.Span) error {
	if m.span.Memory == m.host.Memory {
		return nil
	}
	return s.Copy(dst, src)
}
