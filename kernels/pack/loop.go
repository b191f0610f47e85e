package pack

import "fmt"

// Loop is what a thread copies one after the other; NoLoop leaves it to the kernel,
// which gives a thread a word. The others are those of HAND (Shi et al., section III.B).
type Loop string

// The loops.
const (
	NoLoop    Loop = ""
	InnerLoop Loop = "inner" // a block, word by word (LoopT)
	OuterLoop Loop = "outer" // the same word of all repetitions of the outermost dimension (LoopX)
)

// StridedOptions say how a launch works. The zero value suits most copies.
type StridedOptions struct {
	MaxBlocks int // thread blocks; 0 for as many as suit
	Loop      Loop
}

// check returns an error unless the options are possible.
func (o StridedOptions) check() error {
	if o.MaxBlocks < 0 {
		return fmt.Errorf("pack: %d thread blocks", o.MaxBlocks)
	}
	if o.Loop != NoLoop && o.Loop != InnerLoop && o.Loop != OuterLoop {
		return fmt.Errorf("pack: no loop %q: inner or outer", o.Loop)
	}
	return nil
}
