package scheme

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// proposal is what one process brings to a decision beside norms.
type proposal struct {
	ended    bool  // its context
	pace     int64 // steps of the next round
	interval int64 // steps of the next interval, where one ends
}

// agreement is what the controllers of all processes agree on: the pace and the intervals of rank 0, an end where any has
// ended, and the norms of all.
type agreement struct {
	place *halo.Placement
	local []int
	step  *Step
	taken [][]taken // by look that was due last, then by process
}

func newAgreement(r *run) *agreement {
	return &agreement{place: r.place, local: r.local, step: r.step}
}

// room makes room for what is taken at so many looks.
func (a *agreement) room(looks int) {
	for len(a.taken) < looks {
		var all []taken
		for range a.place.Processes.Size() {
			all = append(all, a.step.newTaken())
		}
		a.taken = append(a.taken, all)
	}
}

// reach is called by all processes once a round. collected is what was taken, by look that is due and by rank.
func (a *agreement) reach(mine proposal, collected [][]taken) (proposal, error) {
	a.room(len(collected))
	b := mine.append(nil)
	for _, one := range collected {
		b = append(b, a.join(one).bytes()...)
	}
	all, err := a.place.Processes.Gather(context.Background(), "scheme: agree how a run goes on", b)
	if err != nil {
		return mine, err
	}
	agreed := proposal{}
	for rank, other := range all {
		if len(other) != len(b) {
			return mine, fmt.Errorf("scheme: %s brings %d bytes to a decision, and this process %d: they run different steps", a.place.Processes.Name(rank), len(other), len(b))
		}
		p := proposalOf(other)
		if rank == 0 {
			agreed.pace, agreed.interval = p.pace, p.interval
		}
		agreed.ended = agreed.ended || p.ended
		for i, rest := 0, other[proposalBytes:]; i < len(collected); i++ {
			bytes := len(rest) / (len(collected) - i)
			a.taken[i][rank].set(rest[:bytes], collected[i][a.local[0]])
			rest = rest[bytes:]
		}
	}
	return agreed, nil
}

// join returns what this process has taken of all its subdomains.
func (a *agreement) join(collected []taken) taken {
	sum := collected[a.local[0]]
	sum.norms, sum.reduced = slices.Clone(sum.norms), slices.Clone(sum.reduced)
	for _, rank := range a.local[1:] {
		for i := range sum.norms {
			sum.norms[i].Add(collected[rank].norms[i])
		}
		for i := range sum.reduced {
			sum.reduced[i].Join(collected[rank].reduced[i])
		}
	}
	return sum
}

const proposalBytes = 3 * 8

// append adds a proposal to bytes.
func (p proposal) append(b []byte) []byte {
	ended := uint64(0)
	if p.ended {
		ended = 1
	}
	for _, word := range []uint64{ended, uint64(p.pace), uint64(p.interval)} {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// proposalOf returns the proposal that bytes begin with.
func proposalOf(b []byte) proposal {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return proposal{word(0) != 0, int64(word(1)), int64(word(2))}
}

const (
	normsBytes   = int(unsafe.Sizeof(reduce.Norms{}))
	reducedBytes = int(unsafe.Sizeof(sweep.Stored{}))
)

// bytes returns what was taken as bytes.
func (s taken) bytes() []byte {
	b := make([]byte, len(s.norms)*normsBytes+len(s.reduced)*reducedBytes)
	norms, reduced := s.views(b)
	copy(norms, s.norms)
	for i, r := range s.reduced {
		reduced[i] = r.Stored()
	}
	return b
}

// set sets it to what bytes say; like has the operations of the reductions.
func (s taken) set(b []byte, like taken) {
	norms, reduced := s.views(slices.Clone(b)) // which is aligned
	copy(s.norms, norms)
	for i, r := range reduced {
		s.reduced[i] = like.reduced[i].With(r)
	}
}

// views returns where bytes hold the norms and the reductions.
func (s taken) views(b []byte) ([]reduce.Norms, []sweep.Stored) {
	n := len(s.norms) * normsBytes
	return streams.View[reduce.Norms](b[:n:n]), streams.View[sweep.Stored](b[n:])
}
