package scheme

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
)

// agreeCosts finds the costs of all subdomains together: all then divide their steps alike. All processes call it, also one that could
// not make its part ready, which says so later.
func (b *blocked) agreeCosts(made bool) error {
	for i, p := range b.parts {
		if i == 0 {
			b.costs = p.costs
		}
		b.costs.join(&p.costs)
	}
	if !b.shared() {
		return nil
	}
	var mine []byte
	if made {
		mine, _ = binary.Append(nil, binary.LittleEndian, &b.costs) // which is of numbers alone
	}
	all, err := b.place.Processes.Gather(context.Background(), "scheme: agree on what passes cost", mine)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if len(other) == 0 {
			continue
		}
		var c passCosts
		if err := binary.Read(bytes.NewReader(other), binary.LittleEndian, &c); err != nil {
			return fmt.Errorf("scheme: what passes cost %s: %w", b.place.Processes.Name(rank), err)
		}
		b.costs.join(&c)
	}
	return nil
}
