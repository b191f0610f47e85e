package packing

import (
	"errors"
	"fmt"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/streams"
)

// Engine is a way to pack and unpack. Each has its name where its jobs are made; see Engines.
type Engine string

// Auto is the fastest of the engines for a layout, measured or predicted.
const Auto Engine = "auto"

// ErrUnsuited says that an engine cannot pack a layout, or only in a way that nobody
// would want, as by a million copies.
var ErrUnsuited = errors.New("the engine does not suit the layout")

// MessageLayout is count elements of a type, made ready to be packed any number of times.
type MessageLayout struct {
	Type   *datatype.Type // nil for a fragment of a message
	Count  int
	Layout *datatype.Layout
}

// NewMessageLayout commits the type.
func NewMessageLayout(t *datatype.Type, count int) (*MessageLayout, error) {
	l, err := datatype.Commit(t, count)
	if err != nil {
		return nil, err
	}
	return &MessageLayout{t, count, l}, nil
}

// slice returns what of a message is packed from byte lo to byte hi: the message, if that is
// all.
func (c *MessageLayout) slice(lo, hi int64) (*MessageLayout, error) {
	if lo == 0 && hi == c.Layout.Size() {
		return c, nil
	}
	l, err := c.Layout.Slice(lo, hi)
	return &MessageLayout{Layout: l}, err
}

// Place is where the elements of a message lie: displacement 0 is Origin bytes after the
// start of Data, which holds all that the message touches.
type Place struct {
	Data   streams.Span
	Origin int64
}

// task is a message at its place, to be packed into a buffer or unpacked from there.
type task struct {
	message *MessageLayout
	packed  streams.Span
	place   Place
	unpack  bool
}

var errNoMessage = errors.New("packing: there is no message (nil)")

// check returns an error unless the message lies within its memory on both sides.
func (t *task) check() error {
	if t.message == nil || t.message.Layout == nil {
		return errNoMessage
	}
	l := t.message.Layout
	if t.packed.Length < l.Size() {
		return fmt.Errorf("packing: %d bytes for a buffer of %d", l.Size(), t.packed.Length)
	}
	origin, lb, ub := t.place.Origin, l.TrueLB(), l.TrueUB()
	lo, hi := origin+lb, origin+ub
	wraps := (lo < origin) != (lb < 0) || (hi < origin) != (ub < 0)
	if wraps || lo < 0 || hi > t.place.Data.Length {
		return fmt.Errorf("packing: bytes from %d to %d, displacements %d to %d, do not lie in %v", lo, hi, l.TrueLB(), l.TrueUB(), t.place.Data)
	}
	return nil
}

// alignment returns what both addresses of the task are multiples of, up to 16.
func (t *task) alignment() int64 {
	both := int64(t.place.Data.Address()+uint64(t.place.Origin)) | int64(t.packed.Address()) | 16
	return both & -both
}

// name says what the task is, for errors.
func (t *task) name() string {
	if t.unpack {
		return "unpack"
	}
	return "pack"
}
