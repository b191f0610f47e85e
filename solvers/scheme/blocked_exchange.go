package scheme

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// reservedSMs is how many multiprocessors an interior pass leaves to kernels that pack, store and unpack messages. The
// blocks of a pass stay until it ends, so such a kernel would start after it.
const reservedSMs = 4

// overlapThreshold is the least duration of an exchange that is overlapped with the interior, which takes more launches
// and computes some points several times. On H100 an exchange by peer of 56 us lost by it, and one of 112 us gained 2%.
const overlapThreshold = 100 * time.Microsecond

// storesThreshold is the least duration of an exchange for which the last pass of a group stores the ghosts of
// neighbors. The exchange then takes two launches instead of one. Measured on H100: 256^3 float64 on two and four GPUs
// gains from 4 layers on, which take 7 us; 128^3 loses with 4 and with 8 layers, which take 2 and 4 us.
const storesThreshold = 6 * time.Microsecond

// exchangeTime estimates how long the messages take that leave a subdomain after a group.
func (b *blocked) exchangeTime(d *subdomain) (time.Duration, error) {
	seconds := 0.0
	for _, i := range d.out[0] {
		m := b.plans[0].Messages[i]
		if b.place.Devices[m.From] == b.place.Devices[m.To] {
			continue
		}
		rate, err := m.Path.Rate()
		if err != nil {
			return 0, err
		}
		seconds += float64(m.Bytes) / rate
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// groupExchanges returns the exchanges after groups, by phase; none where nothing is exchanged.
func (b *blocked) groupExchanges() (all []*halo.Exchanger) {
	for _, stages := range b.exchanges {
		if stages[0] != nil {
			all = append(all, stages[0])
		}
	}
	return all
}

// refreshAll sets the ghosts that follow from what a pass left in the fields of a slot, and those of faces whose values
// change with time.
func (b *blocked) refreshAll(p *blockedPart, slot int, n int64) error {
	for _, w := range b.stage().Writes {
		if g := b.ghosts[w.Variable]; g != nil {
			if err := g[slot].Refresh(p.rank, p.stream, b.done+n, b.time(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// send exchanges the ghosts of neighbors on a stream after step n, which lies in a slot, if it ends a group.
func (b *blocked) send(p *blockedPart, on *streams.Stream, n int64, slot int) error {
	if !b.sends(0, n) || b.plans[0] == nil {
		return nil
	}
	exchange := b.exchanges[b.slotPhase(slot)][0]
	if exchange.IsDirect() { // one kernel, whose flags say all that credits and events do
		return exchange.ExchangeRank(p.rank, on)
	}
	if err := b.giveCredit(p.subdomain, on, 0, n); err != nil {
		return err
	}
	for _, i := range p.out[0] {
		if err := b.takeCredit(on, 0, i, n); err != nil {
			return err
		}
		if err := exchange.Transfer(i).Send(on); err != nil {
			return err
		}
	}
	for _, i := range p.in[0] {
		if err := exchange.Transfer(i).Receive(b.run.workers, on); err != nil {
			return err
		}
	}
	return nil
}

// splits returns the interior and the boundary region of the last pass of a group, and whether the exchange overlaps
// the interior. It does not
//   - where an exchange is too short, or is one kernel, see addStores,
//   - where ghosts behind faces change, which are made from points of the boundary region,
//   - where a piece ends so near a face that its passes would compute what lies behind it,
//   - where x is cut or periodic: pieces at its sides are too narrow for tiles.
func (b *blocked) splits(d *subdomain) (interior domain.Box, boundary []domain.Box, ok bool, err error) {
	if b.plans[0] == nil || b.step.group() == 1 || len(d.out[0]) == 0 || len(d.in[0]) == 0 {
		return interior, nil, false, nil
	}
	took, err := b.exchangeTime(d)
	if err != nil || took < b.from.overlap || slices.ContainsFunc(b.groupExchanges(), (*halo.Exchanger).IsDirect) {
		return interior, nil, false, err
	}
	for _, w := range b.stage().Writes {
		g := b.ghosts[w.Variable]
		if g != nil && g[0].Layers(d.rank) != (domain.Radius{}) || !w.Variable.Boundary.Steady() {
			return interior, nil, false, nil
		}
	}
	layers := d.boundaryLayers(b.Runner, 0, true)
	if layers.Minus[0]+layers.Plus[0] > 0 {
		return interior, nil, false, nil
	}
	interior, boundary = domain.Split(b.place.Subdomains[d.rank].Box, layers)
	for _, piece := range append(boundary, interior) {
		if b.nearsWall(d.rank, piece) {
			return interior, nil, false, nil
		}
	}
	return interior, boundary, !interior.Empty() && len(boundary) > 0, nil
}

// nearsWall reports whether passes over a piece of a subdomain compute points behind a face that the piece does not
// reach.
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

// addOverlap prepares the passes that end groups in two parts, where that is worth it.
func (b *blocked) addOverlap(p *blockedPart) error {
	interior, boundary, ok, err := b.splits(p.subdomain)
	if err != nil || !ok {
		return err
	}
	s := &overlap{boundary: map[pass][]Launch{}, interior: map[pass]Launch{}}
	if s.messages, err = b.newStream(p.device, streams.Urgent, "messages"); err != nil {
		return err
	}
	if err := b.newEvents(p.device, &s.swept, &s.exchanged); err != nil {
		return err
	}
	for slot := range 2 {
		key := pass{1, 0, slot}
		_, first, err := b.newSweep(p, "sweep boundary", slot, boundary...)
		if err != nil {
			return err
		}
		if _, s.interior[key], err = b.newSweep(p, "sweep interior", slot, interior); err != nil {
			return err
		}
		s.boundary[key] = []Launch{first}
	}
	reserved := min(reservedSMs, p.device.Cores/8)
	p.overlap = s
	return b.eachPass(p.costs.Plain[:], func(key pass) error {
		if key.left > 0 {
			return nil
		}
		for _, box := range boundary {
			name := fmt.Sprintf("boundary pass of %d", key.depth)
			l, err := b.newPass(p, name, key, box, temporal.More{Walls: p.walls})
			if err != nil {
				return err
			}
			s.boundary[key] = append(s.boundary[key], l)
		}
		more := temporal.More{Walls: p.walls, ReservedSMs: reserved}
		s.interior[key], err = b.newPass(p, passName(key.depth), key, interior, more)
		return err
	})
}

// endGroup runs the last pass of a group, after step n, and exchanges its boundary region while it computes the
// interior.
func (b *blocked) endGroup(p *blockedPart, key pass, n int64) error {
	s, last := p.overlap, n+int64(key.depth)
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

// addStores prepares the passes that end groups and store into the ghosts of neighbors, where that is possible and the
// exchange takes long enough. They have the depth with which groups without norms end.
func (b *blocked) addStores(p *blockedPart) error {
	depth := b.lastDepth()
	if p.made == nil || depth < 2 {
		return nil
	}
	if ok, err := b.stores(p.subdomain); err != nil || !ok {
		return err
	}
	owned := b.place.Subdomains[p.rank].Box
	if !p.made.StoresGhosts(depth, owned, p.sides) {
		return nil
	}
	p.stores = map[pass]Launch{}
	for slot := range 2 {
		ghosts, ok := b.ghostStores(p.subdomain, slot)
		if !ok {
			p.stores = nil
			return nil
		}
		key := pass{depth, 0, slot}
		var err error
		if p.stores[key], err = b.newPass(p, passName(depth), key, owned, temporal.More{Ghosts: ghosts}); err != nil {
			return err
		}
	}
	return nil
}

// lastDepth returns the steps of the last pass of a group without norms, 0 where there are no groups.
func (b *blocked) lastDepth() int {
	if !b.neighbours || b.step.group() == 1 {
		return 0
	}
	cost := func(_, depth int) float64 { return b.costs.Plain[depth] }
	depths := temporal.Cut(b.step.group(), b.step.group(), b.costs.deepest(), cost, [2]float64{})
	return depths[len(depths)-1]
}

// stores reports whether the exchange of a subdomain is one of stores into ghosts of other devices, and takes long
// enough.
func (b *blocked) stores(d *subdomain) (bool, error) {
	direct := func(x *halo.Exchanger) bool { return !x.IsDirect() }
	all := b.groupExchanges()
	if b.plans[0] == nil || len(all) == 0 || slices.ContainsFunc(all, direct) {
		return false, nil
	}
	took, err := b.exchangeTime(d)
	return took >= b.from.stores, err
}

// ghostStores returns what a pass that reads the fields of a slot and ends a group stores for neighbors; ok is false
// where that is more than layers along the last axis.
func (b *blocked) ghostStores(d *subdomain, slot int) (all []temporal.GhostStore, ok bool) {
	field, last, owned := b.variable().levels[1-slot], b.place.Grid.Dims-1, b.place.Subdomains[d.rank].Box
	mine := field.Array(d.rank, 0).Layout
	for _, i := range d.out[0] {
		m := b.plans[0].Messages[i]
		for _, part := range m.Parts {
			layers := part.Send
			layers.Lo[last], layers.Hi[last] = owned.Lo[last], owned.Hi[last]
			to := field.Array(m.To, part.Component)
			if m.From == m.To || layers != owned || to.Layout.Pitch != mine.Pitch ||
				last == 2 && to.Layout.Plane != mine.Plane {
				return nil, false
			}
			all = append(all, temporal.GhostStore{Layers: part.Send, To: to, Ghosts: part.Ghost})
		}
	}
	return all, 0 < len(all) && len(all) <= 2
}

// storeGroup runs the last pass of a group, after step n, by a launch that stores what neighbors need. It first waits
// until these have read the ghosts that it overwrites. That wait is left out where whole says that this group and the
// one before are one pass each, and all subdomains store: neighbors read those ghosts before they ended the exchange of
// the group before.
func (b *blocked) storeGroup(p *blockedPart, l Launch, slot int, n, last int64, whole bool) error {
	x := b.exchanges[b.slotPhase(1-slot)][0]
	if !whole || !b.allStore {
		if err := x.BeginRank(p.rank, p.stream); err != nil {
			return err
		}
	}
	if err := b.launch(p.stream, l, n+1); err != nil {
		return err
	}
	if err := b.refreshAll(p, 1-slot, last); err != nil {
		return err
	}
	return x.EndRank(p.rank, p.stream)
}
