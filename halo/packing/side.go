package packing

import "github.com/halox/halox/streams"

// Side is one end of a transfer: a message at its place on the packer's device.
type Side struct {
	Packer  *Packer
	Place   Place
	Message *MessageLayout
}

// span returns where a message in one piece lies.
func (s *Side) span() streams.Span {
	data, l := s.Place.Data, s.Message.Layout
	return data.Memory.Span(data.Offset+s.Place.Origin+l.TrueLB(), l.Size())
}
