package litmus

import (
	"errors"
	"fmt"

	"github.com/halox/halox/halo/ranks"
)

// errWrong says that a rank saw something else than what was promised.
var errWrong = errors.New("ranks: a litmus test failed")

// Faults of rank 0.
const (
	dropped = 1 + iota // a notification is not sent, or once too often
	flipped            // a bit of a byte, or the number of a round, is wrong
)

// What litmus.cu has too.
const (
	alignments = 17
	poison     = 0xee
	credit     = 128
	someTags   = 100
	counted    = 8
	word       = 16
)

// litmus is struct Litmus of litmus.cu.
type litmus struct {
	Windows, Sources                          uint64
	Slot, Rounds, Seed, Near, Fault, Where    int64
	Wrong                                     uint64
	Kind, From, To, Round, At, Expected, Came int64
}

// What can be wrong, as in litmus.cu.
const (
	wrongByte = iota
	wrongCount
	early
)

// describe says what was wrong first.
func (l *litmus) describe(w *ranks.World) error {
	name := func(rank int64) string { return w.Name(int(rank)) }
	switch l.Kind {
	case wrongByte:
		return fmt.Errorf(
			"%w: %s has %#02x in byte %d of what %s put in round %d, not %#02x", errWrong, name(l.To), l.Came, l.At,
			name(l.From), l.Round, l.Expected,
		)
	case wrongCount:
		return fmt.Errorf(
			"%w: %s has more notifications of tag %d than %s sent in round %d",
			errWrong, name(l.To), l.At, name(l.From), l.Round,
		)
	}
	return fmt.Errorf(
		"%w: %s left barrier %d and saw %d of %s, not %d", errWrong, name(l.To), l.Round, l.Came, name(l.From),
		l.Expected,
	)
}
