package litmus

import (
	"errors"
	"fmt"

	"github.com/halox/halox/halo/ranks"
)

// errWrong reports that a rank saw a violation of a contract.
var errWrong = errors.New("ranks: a litmus test failed")

// Faults of rank 0.
const (
	dropped = 1 + iota // a notification is missing or duplicated
	flipped            // a bit of a byte, or the number of a round, is wrong
)

// Constants shared with litmus.cu.
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

// Kinds of errors, as in litmus.cu.
const (
	wrongByte = iota
	wrongCount
	early
)

// describe describes the first error.
func (l *litmus) describe(w *ranks.World) error {
	name := func(rank int64) string { return w.Name(int(rank)) }
	switch l.Kind {
	case wrongByte:
		return fmt.Errorf(
			"%w: %s has %#02x in byte %d put by %s in round %d, want %#02x", errWrong, name(l.To), l.Came, l.At,
			name(l.From), l.Round, l.Expected,
		)
	case wrongCount:
		return fmt.Errorf("%w: %s has more notifications of tag %d than %s sent in round %d",
			errWrong, name(l.To), l.At, name(l.From), l.Round,
		)
	}
	return fmt.Errorf(
		"%w: %s left barrier %d and saw %d of %s, want %d", errWrong, name(l.To), l.Round, l.Came, name(l.From),
		l.Expected,
	)
}
