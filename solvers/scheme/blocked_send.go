package scheme

import (
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// groupExchanges returns the exchanges behind groups, by phase: none where nothing is exchanged.
func (b *blocked) groupExchanges() (all []*halo.Exchanger) {
	for _, stages := range b.exchanges {
		if stages[0] != nil {
			all = append(all, stages[0])
		}
	}
	return all
}

// refreshAll sets the ghosts that follow from what a pass left in the fields of a slot, and those of walls that move.
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

// send exchanges the ghosts of neighbours on a stream, after a step that ends a group, which lies in a field.
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
