package packing

import (
	"errors"

	"github.com/halox/halox/streams"
)

// Side is one end of a transfer: a message at its place on the packer's device.
type Side struct {
	Packer  *Packer
	Place   Place
	Message *MessageLayout
}

// check returns an error unless there is all of a side.
func (s *Side) check() error {
	switch {
	case s.Packer == nil:
		return errors.New("packing: a side of a transfer has no packer (nil)")
	case s.Message == nil || s.Message.Type == nil || s.Message.Layout == nil:
		return errNoMessage
	}
	return nil
}

// span returns where a message in one piece lies.
func (s *Side) span() streams.Span {
	data, l := s.Place.Data, s.Message.Layout
	return data.Memory.Span(data.Offset+s.Place.Origin+l.TrueLB(), l.Size())
}
