package halo

import (
	"cmp"
	"context"
	"encoding/binary"
	"strings"

	"github.com/halox/halox/streams"
)

// agree returns the error, or where processes share grids an error if any of them has one. All
// call it.
func (d Devices) agree(ctx context.Context, what string, err error) error {
	if d.Processes.IsAlone() {
		return err
	}
	if ctx == nil { // which the others are told
		ctx, err = context.Background(), cmp.Or(err, errNoContext)
	}
	return d.Processes.Agree(ctx, what, err)
}

// Agree returns the error, or where processes share the grid an error if any of them has one: it is how they do something in
// step that each may fail at. All call it. In a dry run nobody is asked.
func (p *Placement) Agree(ctx context.Context, what string, err error) error {
	if p == nil || p.Processes.IsAlone() || p.isDry() {
		return err
	}
	return p.Processes.Agree(ctx, "halo: "+what, err)
}

// share returns which of the ids this process takes, where several processes of a host see the
// same devices: each as many as the others, or one more. Where each sees others, as schedulers
// can have it, each takes all that it sees. All processes call it.
func (d Devices) share(ctx context.Context, infos []streams.Info, ids []int) ([]int, error) {
	var seen []string
	for _, id := range ids {
		seen = append(seen, infos[id].PCIBusID)
	}
	mine := strings.Join(seen, " ")
	all, err := d.Processes.Gather(ctx, "compare the devices that processes see", []byte(mine))
	if err != nil {
		return nil, err
	}
	index, count := 0, 0
	for rank, other := range all {
		if d.Processes.Nodes[rank] != d.Processes.Nodes[d.Processes.Rank] || string(other) != mine {
			continue
		}
		if rank < d.Processes.Rank {
			index++
		}
		count++
	}
	return d.part(infos[ids[0]], ids, index, count)
}

// part returns part index of count of the ids, and of these the first so many that were asked
// for. Host devices can be as many as anyone likes.
func (d Devices) part(first streams.Info, ids []int, index, count int) ([]int, error) {
	n := len(ids)
	switch {
	case first.HostCores && !d.open():
		return ids, nil
	case first.HostCores:
		return ids[:max(1, n/count)], nil
	case n < count:
		return nil, optionError("Devices.Processes", "%d processes of host %s share %d %ss: start at most one a %s",
			count, d.Processes.Hosts[d.Processes.Rank], n, first.Noun, first.Noun)
	}
	part := ids[n*index/count : n*(index+1)/count]
	if d.Count > len(part) {
		return nil, optionError("Devices.Count", "%d were asked for; of the %d %ss of host %s, which %d processes share, this one has %d",
			d.Count, n, first.Noun, d.Processes.Hosts[d.Processes.Rank], count, len(part))
	}
	if d.Count > 0 && len(d.IDs) == 0 {
		part = part[:d.Count]
	}
	return part, nil
}

// count returns how many devices each process has opened. All processes call it.
func (d Devices) count(ctx context.Context, opened int) (counts []int, err error) {
	all, err := d.Processes.Gather(ctx, "count devices", binary.LittleEndian.AppendUint64(nil, uint64(opened)))
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		counts = append(counts, int(binary.LittleEndian.Uint64(b)))
	}
	return counts, nil
}
