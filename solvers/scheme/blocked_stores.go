package scheme

import (
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/temporal"
)

// storesFrom is the least time of an exchange for which the last pass of a group stores the ghosts of neighbours. The exchange then takes two launches
// in place of one: measured on H100, 256^3 float64 on two and four gains from 4 layers, of 7 us, and 128^3 loses with 4 and with 8, of 2 and 4 us.
const storesFrom = 6 * time.Microsecond

// addStores makes the passes ready that end groups and store into the ghosts of neighbours, where that is possible and the exchange takes long enough.
// They have the depth with which groups without norms end.
func (b *blocked) addStores(p *blockedPart) error {
	depth := b.lastDepth()
	passes := p.made
	if passes == nil || depth < 2 || !b.stores(p.subdomain) {
		return nil
	}
	owned := b.place.Subdomains[p.rank].Box
	if !passes.passes.StoresGhosts(depth, owned, passes.sides) {
		return nil
	}
	p.stores = map[pass]Launch{}
	for slot := range 2 {
		ghosts, ok := b.ghostStores(p.subdomain, slot)
		if !ok {
			p.stores = nil
			return nil
		}
		l, err := passes.make(passName(depth), b.arrays(p.rank, slot), owned, depth, temporal.More{Ghosts: ghosts})
		if err != nil {
			return err
		}
		p.stores[pass{depth, 0, slot}] = l
	}
	return nil
}

// lastDepth returns the steps of the last pass of a group without norms.
func (b *blocked) lastDepth() int {
	if !b.neighbours || b.step.group() == 1 {
		return 0
	}
	cost := func(_, depth int) float64 { return b.costs.Plain[depth] }
	depths := temporal.Cut(b.step.group(), b.step.group(), b.costs.deepest(), cost, [2]float64{})
	return depths[len(depths)-1]
}

// stores reports whether the exchange of a subdomain is one of stores into ghosts of other devices, and takes long enough.
func (b *blocked) stores(d *subdomain) bool {
	if b.plans[0] == nil || len(b.groupExchanges()) == 0 || b.exchangeTime(d) < min(storesFrom, b.besideFrom) {
		return false
	}
	return !slices.ContainsFunc(b.groupExchanges(), func(x *halo.Exchanger) bool { return !x.IsDirect() })
}

// ghostStores returns what a pass that reads the fields of a slot and ends a group stores for neighbours; ok is false where that is more than layers
// along the last axis.
func (b *blocked) ghostStores(d *subdomain, slot int) (all []temporal.GhostStore, ok bool) {
	field, last := b.variable().levels[1-slot], b.place.Grid.Dims-1
	mine := field.Array(d.rank, 0).Layout
	for _, i := range d.out[0] {
		m := b.plans[0].Messages[i]
		for _, part := range m.Parts {
			layers := part.Send
			layers.Lo[last], layers.Hi[last] = b.place.Subdomains[d.rank].Box.Lo[last], b.place.Subdomains[d.rank].Box.Hi[last]
			to := field.Array(m.To, part.Component)
			if m.From == m.To || layers != b.place.Subdomains[d.rank].Box || to.Layout.Pitch != mine.Pitch || last == 2 && to.Layout.Plane != mine.Plane {
				return nil, false
			}
			all = append(all, temporal.GhostStore{Layers: part.Send, To: to, Ghosts: part.Ghost})
		}
	}
	return all, 0 < len(all) && len(all) <= 2
}

// storeGroup makes the last pass of a group, after step n, by a launch that stores what neighbours need. It first waits until these have read the ghosts
// that it stores. That wait is left out where whole says that this group and the one before are one pass each, and all subdomains store: neighbours read
// those ghosts before they ended the exchange of the group before.
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
