package ranks

import (
	"cmp"
	"slices"

	"github.com/halox/halox/streams"
)

// joinMost is how many bytes a store has at most that is joined with others.
const joinMost = 256

// joiner gathers small stores of a ring that nothing orders, and makes one copy of those whose addresses follow each
// other: a packet is a store for each 16 bytes.
type joiner struct {
	room    *streams.Memory // pinned, of a batch: joinMost bytes for each command; nil: nothing is joined
	used    int64
	pending []*gathered
	all     [commands]gathered
}

// gathered is a store: its command, and where the payload is.
type gathered struct {
	*command
	from streams.Span
}

// takes reports whether a store is to be gathered.
func (j *joiner) takes(c *command) bool {
	return j.room != nil && c.what == store && c.bytes <= joinMost && len(j.pending) < len(j.all)
}

// overlaps reports whether bytes of a device are those of a store that was gathered.
func (j *joiner) overlaps(c *command) bool {
	return slices.ContainsFunc(j.pending, func(g *gathered) bool {
		return g.device == c.device && g.at < c.at+c.bytes && c.at < g.at+g.bytes
	})
}

// add gathers a store, which overlaps none of the others.
func (j *joiner) add(c *command, from streams.Span) {
	g := &j.all[len(j.pending)]
	*g = gathered{c, from}
	j.pending = append(j.pending, g)
}

// flush copies all that was gathered.
func (j *joiner) flush(copyTo func(device, at uint64, from streams.Span) error) error {
	slices.SortFunc(j.pending, func(a, b *gathered) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.at, b.at))
	})
	for rest := j.pending; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].device == rest[0].device && rest[n].at == rest[n-1].at+rest[n-1].bytes {
			n++
		}
		if err := copyTo(rest[0].device, rest[0].at, j.joined(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	j.pending = j.pending[:0]
	return nil
}

// joined returns the payloads one after the other: that of one store is where it was.
func (j *joiner) joined(all []*gathered) streams.Span {
	if len(all) == 1 {
		return all[0].from
	}
	begin := j.used
	for _, g := range all {
		j.used += int64(copy(j.room.Bytes()[j.used:], g.payload[:g.bytes]))
	}
	return j.room.Span(begin, j.used-begin)
}
