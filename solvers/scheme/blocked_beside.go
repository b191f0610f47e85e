package scheme

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Multiprocessors that an interior pass leaves to kernels that pack, store and unpack messages. The blocks of a pass stay until it ends: such a kernel
// would begin behind it.
const spared = 4

// besideFrom is how long an exchange takes, at least, that is worth the launches more and the points that several of them compute. On H100 an exchange
// by peer of 56 us lost by it, and one of 112 us gained 2%.
const besideFrom = 100 * time.Microsecond

// besideRates are about how many bytes a second leave a device over a path.
var besideRates = map[p2p.Path]float64{p2p.Direct: 300e9, p2p.Peer: 300e9, p2p.Staged: 25e9, p2p.MPI: 10e9}

// exchangeTime is about how long the messages take that leave a subdomain after a group.
func (b *blocked) exchangeTime(d *subdomain) time.Duration {
	seconds := 0.0
	for _, i := range d.out[0] {
		m := b.plans[0].Messages[i]
		if b.place.Devices[m.From] == b.place.Devices[m.To] {
			continue
		}
		if rate := besideRates[m.Path]; rate > 0 {
			seconds += float64(m.Bytes) / rate
		}
	}
	return time.Duration(seconds * float64(time.Second))
}

// splits returns the interior and the boundary region of the last pass of a group, and whether the exchange goes on beside the interior. It does not
// where an exchange takes less than so long; where it is one kernel, see addStores; where ghosts at walls
// change, which are made from points of the boundary region; where a piece ends so near a wall that its passes would compute what lies behind; and
// where x is cut or periodic: pieces at its sides are too narrow for tiles.
func (b *blocked) splits(d *subdomain, from time.Duration) (interior domain.Box, boundary []domain.Box, ok bool) {
	if b.plans[0] == nil || b.step.group() == 1 || len(d.out[0]) == 0 || len(d.in[0]) == 0 {
		return interior, nil, false
	}
	if slices.ContainsFunc(b.groupExchanges(), (*halo.Exchanger).IsDirect) || b.exchangeTime(d) < from {
		return interior, nil, false
	}
	for _, w := range b.stage().Writes {
		if g := b.ghosts[w.Variable]; g != nil && g[0].Layers(d.rank) != (domain.Radius{}) || !w.Variable.Boundary.Steady() {
			return interior, nil, false
		}
	}
	layers := d.boundaryLayers(b.Runner, 0, true)
	if layers.Minus[0]+layers.Plus[0] > 0 && from > 0 {
		return interior, nil, false
	}
	interior, boundary = domain.Split(b.place.Subdomains[d.rank].Box, layers)
	for _, piece := range append(boundary, interior) {
		if b.nearsWall(d.rank, piece) {
			return interior, nil, false
		}
	}
	return interior, boundary, !interior.Empty() && len(boundary) > 0
}

// nearsWall reports whether passes over a piece of a subdomain compute points behind a wall that the piece does not reach.
func (b *blocked) nearsWall(rank int, piece domain.Box) bool {
	owned, far := b.place.Subdomains[rank].Box, farther(domain.Radius{}, b.step.reach(), b.step.group())
	for _, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(rank, side); inside {
			continue
		}
		a := side.Axis()
		gap := piece.Lo[a] - owned.Lo[a]
		if side.Positive() {
			gap = owned.Hi[a] - piece.Hi[a]
		}
		if gap > 0 && gap < at(far, side) {
			return true
		}
	}
	return false
}

// addBeside makes the passes ready that end groups in two parts, where that is worth it.
func (b *blocked) addBeside(p *blockedPart, passes *linearPasses) error {
	interior, boundary, ok := b.splits(p.subdomain, b.besideFrom)
	if !ok {
		return nil
	}
	s := &beside{boundary: map[pass][]Launch{}, interior: map[pass]Launch{}}
	var err error
	if s.messages, err = b.newStream(p.device, streams.Urgent, "messages"); err != nil {
		return err
	}
	if err := b.newEvents(p.device, &s.swept, &s.exchanged); err != nil {
		return err
	}
	for now := range 2 {
		key := pass{1, 0, now}
		first, err := p.stages[0][0].sweeper.Sweep("sweep boundary", b.arrays(p.rank, now), boundary...)
		if err != nil {
			return err
		}
		b.run.resources.Add(first)
		rest, err := p.stages[0][0].sweeper.Sweep("sweep interior", b.arrays(p.rank, now), interior)
		if err != nil {
			return err
		}
		b.run.resources.Add(rest)
		s.boundary[key] = []Launch{b.stage().launch(first, b.step.Length)}
		s.interior[key] = b.stage().launch(rest, b.step.Length)
	}
	spare := min(spared, p.device.Cores/8)
	err = b.eachPass(p.costs.Plain[:], func(key pass) error {
		if key.left > 0 {
			return nil
		}
		at := b.arrays(p.rank, key.slot)
		for _, box := range boundary {
			l, err := passes.pass(fmt.Sprintf("boundary pass of %d", key.depth), at, box, key.depth, 0)
			if err != nil {
				return err
			}
			s.boundary[key] = append(s.boundary[key], l)
		}
		s.interior[key], err = passes.pass(passName(key.depth), at, interior, key.depth, spare)
		return err
	})
	p.beside = s
	return err
}

// endGroup makes the last pass of a group, after step n, and exchanges what its boundary region has while it computes the interior.
func (b *blocked) endGroup(p *blockedPart, key pass, n int64) error {
	s, last := p.beside, n+int64(key.depth)
	for _, l := range s.boundary[key] {
		if err := b.launch(p.stream, l, n+1); err != nil {
			return err
		}
	}
	if err := b.refreshAll(p, 1-key.slot, last); err != nil {
		return err
	}
	if err := p.stream.Record(s.swept); err != nil {
		return err
	}
	if err := b.launch(p.stream, s.interior[key], n+1); err != nil {
		return err
	}
	s.messages.BeginStep(last)
	if err := s.messages.Wait(s.swept); err != nil {
		return err
	}
	if err := b.send(p, s.messages, last, 1-key.slot); err != nil {
		return err
	}
	if err := s.messages.Record(s.exchanged); err != nil {
		return err
	}
	return p.stream.Wait(s.exchanged)
}
