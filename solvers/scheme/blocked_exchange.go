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

// reservedSMs is the number of multiprocessors that an interior pass leaves free for kernels that pack, store
// and unpack messages. The blocks of a pass stay until it ends, so such a kernel would otherwise start after
// it.
const reservedSMs = 4

// overlapThreshold is the minimum duration of an exchange that is overlapped with the interior, which takes
// more launches and computes some points several times. On H100 an exchange by peer of 56 us became slower,
// and one of 112 us gained 2%.
const overlapThreshold = 100 * time.Microsecond

// storesThreshold is the minimum duration of an exchange for which the last pass of a group stores the ghosts
// of neighbors. The exchange then takes two launches instead of one. Measured on H100: 256^3 float64 on two
// and four GPUs gains from 4 layers on, which take 7 us; 128^3 is slower with 4 and with 8 layers, which take
// 2 and 4 us.
const storesThreshold = 6 * time.Microsecond

// exchangeTime estimates the time of the messages that leave the subdomain after a group.
func (b *blockedPart) exchangeTime() (time.Duration, error) {
	seconds := 0.0
	for _, i := range b.out[0] {
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

// groupExchanges returns the exchanges after groups, by phase; empty without exchanges.
func (b *blocked) groupExchanges() (all []*halo.Exchanger) {
	for _, stages := range b.exchanges {
		if stages[0] != nil {
			all = append(all, stages[0])
		}
	}
	return all
}

// refreshAll sets the ghosts that depend on the fields of a slot written by a pass, and those of faces whose
// values vary in time.
func (b *blockedPart) refreshAll(slot int, n int64) error {
	for _, w := range b.stage().Writes {
		if g := b.ghosts[w.Variable]; g != nil {
			if err := g[slot].Refresh(b.rank, b.stream, b.done+n, b.time(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// send exchanges the ghosts of neighbors on a stream after step n, which is in a slot, if it ends a group.
func (b *blockedPart) send(on *streams.Stream, n int64, slot int) error {
	if !b.sends(0, n) || b.plans[0] == nil {
		return nil
	}
	exchange := b.exchanges[b.slotPhase(slot)][0]
	if exchange.IsDirect() { // one kernel, whose flags replace credits and events
		return exchange.ExchangeRank(b.rank, on)
	}
	if err := b.giveCredit(b.in[0], on, 0, n); err != nil {
		return err
	}
	if err := b.sendAll(exchange, on, 0, n, b.out[0]); err != nil {
		return err
	}
	return b.receiveAll(exchange, on, b.in[0])
}

// splits returns the boundary region of the last pass of a group, and the interior, if the exchange overlaps
// the interior. Both are empty
// - if an exchange is too short, or is one kernel, see addStores,
// - if ghosts outside of faces change, which depend on points of the boundary region,
// - if a piece ends so near a face that its passes would compute points outside it,
// - if x is decomposed or periodic: pieces at its sides are too narrow for tiles.
func (b *blockedPart) splits() (boundary []domain.Box, interior domain.Box, err error) {
	if b.plans[0] == nil || b.step.group() == 1 || len(b.out[0]) == 0 || len(b.in[0]) == 0 {
		return nil, interior, nil
	}
	took, err := b.exchangeTime()
	if err != nil || took < b.limits.overlap || slices.ContainsFunc(b.groupExchanges(), (*halo.Exchanger).IsDirect) {
		return nil, interior, err
	}
	for _, w := range b.stage().Writes {
		g := b.ghosts[w.Variable]
		if g != nil && g[0].Layers(b.rank) != (domain.Radius{}) || !w.Variable.Boundary.Steady() {
			return nil, interior, nil
		}
	}
	layers := b.boundaryLayers(b.Runner, 0, true)
	interior, boundary = domain.Split(b.owned(), layers)
	if layers.Minus[0]+layers.Plus[0] > 0 || interior.Empty() ||
		slices.ContainsFunc(append(boundary, interior), b.nearsWall) {
		return nil, interior, nil
	}
	return boundary, interior, nil
}

// nearsWall reports whether passes over a piece of the subdomain compute points outside a face that the piece
// does not touch.
func (b *blockedPart) nearsWall(piece domain.Box) bool {
	owned, far := b.owned(), farther(domain.Radius{}, b.step.reach(), b.step.group())
	for _, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbor(b.rank, side); inside {
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

// addOverlap prepares the passes that end groups in two parts, if that is faster.
func (b *blockedPart) addOverlap() error {
	boundary, interior, err := b.splits()
	if err != nil || len(boundary) == 0 {
		return err
	}
	s := &overlap{ends: map[pass][]Launch{}}
	if s.messages, err = b.newStream(b.device, streams.Urgent, "messages"); err != nil {
		return err
	}
	if err := b.newEvents(b.device, &s.swept, &s.exchanged); err != nil {
		return err
	}
	for slot := range 2 {
		_, first, err := b.newSweep("sweep boundary", slot, boundary...)
		if err != nil {
			return err
		}
		_, rest, err := b.newSweep("sweep interior", slot, interior)
		if err != nil {
			return err
		}
		s.ends[pass{1, 0, slot}] = []Launch{first, rest}
	}
	b.overlap = s
	return b.eachPass(b.costs.By[0][:], func(key pass) error {
		if key.left > 0 {
			return nil
		}
		more := temporal.More{Faces: b.walls}
		for _, box := range boundary {
			l, err := b.newPass(fmt.Sprintf("boundary pass of %d", key.depth), key, box, more)
			if err != nil {
				return err
			}
			s.ends[key] = append(s.ends[key], l)
		}
		more.ReservedSMs = min(reservedSMs, b.device.Cores/8)
		l, err := b.newPass(passName(key.depth), key, interior, more)
		s.ends[key] = append(s.ends[key], l)
		return err
	})
}

// endGroup runs the last pass of a group, after step n, and exchanges its boundary region while it computes the
// interior.
func (b *blockedPart) endGroup(key pass, n int64) error {
	s, last := b.overlap, n+int64(key.depth)
	ends := s.ends[key]
	for _, l := range ends[:len(ends)-1] {
		if err := b.launch(b.stream, l, n+1); err != nil {
			return err
		}
	}
	if err := b.refreshAll(1-key.slot, last); err != nil {
		return err
	}
	if err := b.stream.Record(s.swept); err != nil {
		return err
	}
	if err := b.launch(b.stream, ends[len(ends)-1], n+1); err != nil {
		return err
	}
	s.messages.BeginStep(last)
	if err := s.messages.Wait(s.swept); err != nil {
		return err
	}
	if err := b.send(s.messages, last, 1-key.slot); err != nil {
		return err
	}
	if err := s.messages.Record(s.exchanged); err != nil {
		return err
	}
	return b.stream.Wait(s.exchanged)
}

// addStores prepares the passes that end groups and store into the ghosts of neighbors, if that is possible
// and the exchange takes long enough. They have the depth of the last pass of groups without norms.
func (b *blockedPart) addStores() error {
	depth := b.lastDepth()
	if b.made == nil || depth < 2 || !b.made.StoresGhosts(depth, b.owned(), b.sides) {
		return nil
	}
	all := b.groupExchanges()
	unstored := func(x *halo.Exchanger) bool { return !x.IsDirect() }
	if b.plans[0] == nil || len(all) == 0 || slices.ContainsFunc(all, unstored) {
		return nil
	}
	if took, err := b.exchangeTime(); err != nil || took < b.limits.stores {
		return err
	}
	stores := map[pass]Launch{}
	for slot := range 2 {
		ghosts, ok := b.ghostStores(slot)
		if !ok {
			return nil
		}
		key := pass{depth, 0, slot}
		var err error
		if stores[key], err = b.newPass(passName(depth), key, b.owned(), temporal.More{Ghosts: ghosts}); err != nil {
			return err
		}
	}
	b.stores = stores
	return nil
}

// lastDepth returns the steps of the last pass of a group without norms, 0 without groups.
func (b *blocked) lastDepth() int {
	if !b.connected || b.step.group() == 1 {
		return 0
	}
	cost := func(_, depth int) float64 { return b.costs.By[0][depth] }
	depths := temporal.Cut(b.step.group(), b.step.group(), b.costs.deepest(), cost, [2]float64{})
	return depths[len(depths)-1]
}

// ghostStores returns what a pass that reads the fields of a slot and ends a group stores for neighbors; ok is false
// where that is more than layers along the last axis.
func (b *blockedPart) ghostStores(slot int) (all []temporal.GhostStore, ok bool) {
	field, last, owned := b.variable().levels[1-slot], b.place.Grid.Dims-1, b.owned()
	mine := field.Array(b.rank, 0).Layout
	for _, i := range b.out[0] {
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

// storeGroup runs the last pass of a group, after step n, by a launch that stores the ghosts of neighbors. It
// first waits until these have read the ghosts that it overwrites. The wait is omitted if whole is true: this
// group and the one before are one pass each, and all subdomains store, so neighbors read those ghosts before
// they ended the exchange of the group before.
func (b *blockedPart) storeGroup(l Launch, slot int, n, last int64, whole bool) error {
	x := b.exchanges[b.slotPhase(1-slot)][0]
	if !whole || !b.allStore {
		if err := x.BeginRank(b.rank, b.stream); err != nil {
			return err
		}
	}
	if err := b.launch(b.stream, l, n+1); err != nil {
		return err
	}
	if err := b.refreshAll(1-slot, last); err != nil {
		return err
	}
	return x.EndRank(b.rank, b.stream)
}
