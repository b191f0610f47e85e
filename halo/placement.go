package halo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Placement assigns the subdomains to devices.
//
// If several processes share a grid, each has a placement of all subdomains, with only its own devices. It
// allocates, fills and exchanges only its own subdomains; slices by rank, such as streams and arrays, are
// empty for the others.
type Placement struct {
	*domain.Decomposition
	Devices   []*streams.Device // by rank of the subdomain; nil if another process owns it
	Mapping   *Explanation      // result of MapDevices; nil if it did not run
	Processes *mpi.Processes    // processes that share the grid; mpi.Alone for one
	Owners    []int             // by rank of the subdomain: rank of its process
	Path      p2p.Path          // path of plans with p2p.Auto, see Cutting.Path; "" means the fastest
}

// Place assigns subdomain i to device i. There must be as many devices as subdomains.
func Place(d *domain.Decomposition, devices []*streams.Device) (*Placement, error) {
	if d == nil {
		return nil, errors.New("halo: the decomposition is nil")
	}
	if len(d.Subdomains) != len(devices) {
		return nil, fmt.Errorf(
			"halo: must have one device per subdomain (%d, %v), got %d", len(d.Subdomains), d.Parts, len(devices))
	}
	p := placeAlone(d, devices)
	return p, p.usable()
}

// placeAlone is Place without checks.
func placeAlone(d *domain.Decomposition, devices []*streams.Device) *Placement {
	return &Placement{
		Decomposition: d, Devices: devices, Processes: mpi.Alone(), Owners: make([]int, len(d.Subdomains)),
	}
}

// PlaceShared places subdomains on devices of several processes. By rank of the subdomain, owners has the
// process and devices the device; devices of other processes are nil. All processes pass the same
// decomposition and owners.
func PlaceShared(
	processes *mpi.Processes, d *domain.Decomposition, owners []int, devices []*streams.Device,
) (*Placement, error) {
	switch {
	case processes.IsAlone():
		return Place(d, devices)
	case d == nil:
		return nil, errors.New("halo: the decomposition is nil")
	case len(d.Subdomains) != len(owners) || len(owners) != len(devices):
		return nil, fmt.Errorf(
			"halo: must have one owner and one device per subdomain (%d, %v), got %d owners and %d devices",
			len(d.Subdomains), d.Parts, len(owners), len(devices))
	}
	for rank, owner := range owners {
		if owner < 0 || owner >= processes.Size() {
			return nil, fmt.Errorf("halo: the owner of subdomain %d must be less than the %d processes, got %d", rank,
				processes.Size(), owner)
		}
	}
	p := &Placement{Decomposition: d, Devices: slices.Clone(devices), Processes: processes,
		Owners: slices.Clone(owners)}
	return p, p.usable()
}

// IsLocal reports whether this process owns the subdomain of a rank.
func (p *Placement) IsLocal(rank int) bool {
	return p.Owners[rank] == p.Processes.Rank
}

// equals reports whether two placements have the same decomposition and devices.
func (p *Placement) equals(q *Placement) bool {
	return p == q || slices.Equal(p.Subdomains, q.Subdomains) && p.Grid == q.Grid &&
		slices.Equal(p.Devices, q.Devices) && slices.Equal(p.Owners, q.Owners)
}

// FirstDevice returns the device of the first subdomain of this process, nil if it owns none.
func (p *Placement) FirstDevice() *streams.Device {
	for _, d := range p.Devices {
		if d != nil {
			return d
		}
	}
	return nil
}

// usable returns an error unless the placement has a device for every subdomain of this process, and none for
// others.
func (p *Placement) usable() error {
	if p == nil || p.Decomposition == nil {
		return errors.New("halo: the placement is nil")
	}
	if len(p.Devices) != len(p.Subdomains) || len(p.Owners) != len(p.Subdomains) || p.Processes == nil {
		return fmt.Errorf("halo: the placement must have a device for each of its %d subdomains", len(p.Subdomains))
	}
	for rank, d := range p.Devices {
		switch local := p.IsLocal(rank); {
		case local && d == nil:
			return fmt.Errorf("halo: the placement must have a device for each of its %d subdomains, got none for %d",
				len(p.Subdomains), rank)
		case !local && d != nil:
			return fmt.Errorf("halo: the placement must have no device (got %v) for subdomain %d of process %d", d,
				rank, p.Owners[rank])
		}
	}
	return nil
}

// wanted returns the path for a plan: for Auto and "", the path of the placement.
func (p *Placement) wanted(path p2p.Path) p2p.Path {
	if path == "" || path == p2p.Auto {
		return cmp.Or(p.Path, p2p.Auto)
	}
	return path
}

// onOneDevice reports whether two subdomains are on the same device of this process.
func (p *Placement) onOneDevice(a, b int) bool {
	return a == b || p.Devices[a] != nil && p.Devices[a] == p.Devices[b]
}

// crosses reports whether messages may go from one device of this process to another.
func (p *Placement) crosses() bool {
	first := p.FirstDevice()
	return slices.ContainsFunc(p.Devices, func(d *streams.Device) bool { return d != nil && d != first })
}

// isDry reports whether the devices only count allocations.
func (p *Placement) isDry() bool {
	d := p.FirstDevice()
	return d != nil && d.IsDry()
}

// agree returns the error or, if processes share grids, an error if any of them has one. All processes call
// it.
func (d Devices) agree(ctx context.Context, what string, err error) error {
	if ctx == nil { // an error that the others receive
		ctx, err = context.Background(), cmp.Or(err, errNoContext)
	}
	return d.Processes.Agree(ctx, what, err)
}

// Agree returns the error or, if processes share the grid, an error if any of them has one, so that all
// processes fail together. All processes call it. An error that wraps one of kinds on one process does so on
// all. In a dry run it returns the error.
func (p *Placement) Agree(ctx context.Context, what string, err error, kinds ...error) error {
	if p == nil || p.isDry() {
		return err
	}
	return p.Processes.Agree(ctx, "halo: "+what, err, kinds...)
}

// share returns the ids that this process takes if several processes of a host see the same devices: the
// devices are divided evenly. If each process sees different devices, as with some schedulers, it takes all
// that it sees. All processes call it.
func (d Devices) share(ctx context.Context, infos []streams.Info, ids []int) ([]int, error) {
	var seen []string
	for _, id := range ids {
		seen = append(seen, infos[id].PCIBusID)
	}
	mine := strings.Join(seen, " ")
	all, err := mpi.Gather(ctx, d.Processes, "compare the devices that processes see", mine)
	if err != nil {
		return nil, err
	}
	index, count := 0, 0
	for rank, other := range all {
		if d.Processes.Nodes[rank] != d.Processes.Nodes[d.Processes.Rank] || other != mine {
			continue
		}
		if rank < d.Processes.Rank {
			index++
		}
		count++
	}
	return d.part(infos[ids[0]], ids, index, count)
}

// part returns part index of count of the ids, limited to the requested count. There can be any number of CPU
// devices.
func (d Devices) part(first streams.Info, ids []int, index, count int) ([]int, error) {
	n := len(ids)
	switch {
	case first.HostCores && !d.open():
		return ids, nil
	case first.HostCores:
		return ids[:max(1, n/count)], nil
	case n < count:
		return nil, optionError("Devices.Processes",
			"host %s has %d %ss for %d processes: start at most one process per %s",
			d.Processes.Hosts[d.Processes.Rank], n, first.Noun, count, first.Noun)
	}
	part := ids[n*index/count : n*(index+1)/count]
	if d.Count > len(part) {
		return nil, optionError("Devices.Count",
			"must be at most %d, the share of this process of the %d %ss of host %s (%d processes), got %d",
			len(part), n, first.Noun, d.Processes.Hosts[d.Processes.Rank], count, d.Count)
	}
	if d.Count > 0 && len(d.IDs) == 0 {
		part = part[:d.Count]
	}
	return part, nil
}

// count returns the number of devices that each process has opened. All processes call it.
func (d Devices) count(ctx context.Context, opened int) (counts []int, err error) {
	return mpi.Gather(ctx, d.Processes, "count devices", opened)
}

var errNoContext = errors.New("halo: the context is nil: see context.Background")

// live returns an error if there is no context, or it has ended.
func live(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctx.Err()
}

// Split divides the box of a subdomain into its boundary region, with the given layers at the sides with a
// neighbor, and its interior, see domain.Split. A caller that sweeps the boundary region first can exchange
// it during the sweep of the interior. At a low side, neighbors need as many layers as their fields have
// ghosts at the high side, and vice versa.
func (p *Placement) Split(rank int, layers domain.Radius) (interior domain.Box, boundary []domain.Box) {
	for _, side := range domain.Faces(p.Grid.Dims) {
		if _, ok := p.Neighbor(rank, side); ok {
			continue
		}
		if a := side.Axis(); side[a] < 0 {
			layers.Minus[a] = 0
		} else {
			layers.Plus[a] = 0
		}
	}
	return domain.Split(p.Subdomains[rank].Box, layers)
}

// Kernels prepares two launches for every subdomain, by rank: one over the boundary region and one over the
// interior of Split; nil if a region has no points. kernel makes a launch over boxes; Kernels returns its
// errors and panics.
func (p *Placement) Kernels(layers domain.Radius, kernel func(rank int, boxes []domain.Box) (*streams.Kernel,
	error)) (boundary, interior []*streams.Kernel, err error) {
	if kernel == nil {
		return nil, nil, errors.New("halo: Placement.Kernels: the function is nil")
	}
	made := func(rank int, boxes []domain.Box) (k *streams.Kernel, err error) {
		defer streams.Caught(&err, "the function of Placement.Kernels for subdomain", strconv.Itoa(rank))
		return kernel(rank, boxes)
	}
	boundary, interior = make([]*streams.Kernel, len(p.Subdomains)), make([]*streams.Kernel, len(p.Subdomains))
	for rank := range p.Subdomains {
		inner, outer := p.Split(rank, layers)
		if len(outer) > 0 {
			if boundary[rank], err = made(rank, outer); err != nil {
				return nil, nil, err
			}
		}
		if !inner.Empty() {
			if interior[rank], err = made(rank, []domain.Box{inner}); err != nil {
				return nil, nil, err
			}
		}
	}
	return boundary, interior, nil
}

// Streams has a stream for every subdomain of a placement, by rank, as Start and Wait take them; nil for
// those of other processes.
type Streams []*streams.Stream

// NewStreams makes a stream for every subdomain, on its device.
func (p *Placement) NewStreams() (Streams, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	var at Streams
	for _, d := range p.Devices {
		if d == nil {
			at = append(at, nil)
			continue
		}
		s, err := d.NewStream(streams.Normal)
		if err != nil {
			return nil, errors.Join(err, at.Close())
		}
		at = append(at, s)
	}
	return at, nil
}

// Launch queues a kernel on every stream, by rank; it skips nil kernels.
func (at Streams) Launch(byRank []*streams.Kernel) error {
	if len(byRank) != len(at) {
		return fmt.Errorf("halo: must have one kernel per subdomain (%d), got %d", len(at), len(byRank))
	}
	for rank, k := range byRank {
		if k == nil || at[rank] == nil {
			continue
		}
		if err := at[rank].Launch(k); err != nil {
			return err
		}
	}
	return nil
}

// Sync makes the host wait until all queued work has finished, for at most limit per stream.
func (at Streams) Sync(limit time.Duration) error {
	for _, s := range at {
		if s == nil {
			continue
		}
		if err := s.Sync(limit); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the streams. It waits for those of several devices in parallel.
func (at Streams) Close() error {
	var all streams.Resources
	for _, s := range at {
		if s != nil {
			all.Add(s)
		}
	}
	return all.Close()
}

// maxSearched is the largest number of subdomains for which all orders are searched.
const maxSearched = 8

// same is the relative difference below which two costs are equal: they are sums in varying order.
const same = 1e-9

// margin is the share of the cost that another order must save to replace the given one, because identical
// links never measure identically.
const margin = 0.05

// Cost is the cost of an exchange under an order of the devices, in the unit of the cost function. A device
// sends its messages one after another and, at the same time, receives its messages one after another.
type Cost struct {
	Busiest float64 // sum over the messages that the busiest device sends or receives, whichever is more
	Total   float64 // sum over all messages
}

// less compares the busiest devices, and the totals on ties.
func (c Cost) less(d Cost) bool {
	if c.Busiest < d.Busiest*(1-same) {
		return true
	}
	return c.Busiest <= d.Busiest*(1+same) && c.Total < d.Total*(1-same)
}

// worthwhile reports whether c saves enough compared with d.
func (c Cost) worthwhile(d Cost) bool {
	const most = 1 - margin
	return c.Busiest < most*d.Busiest || c.Busiest <= d.Busiest*(1+same) && c.Total < most*d.Total
}

// Explanation explains the order chosen by MapDevices.
type Explanation struct {
	Given    Cost  // of subdomain i on device i
	Greedy   Cost  // of the greedy order
	Exact    Cost  // of the best order of all; as Greedy where they are too many
	Searched bool  // true if all orders were searched
	Kept     bool  // true if the given order was kept
	Order    []int // by rank, an index into the devices given
}

// String returns the costs and the order in one line.
func (e Explanation) String() string {
	exact := fmt.Sprintf("not searched beyond %d subdomains", maxSearched)
	if e.Searched {
		exact = fmt.Sprintf("%.4g", e.Exact.Busiest)
	}
	taken := fmt.Sprintf("subdomains are on devices %v of those given", e.Order)
	if e.Kept {
		taken = "the devices keep the given order"
	}
	return fmt.Sprintf("cost of the busiest device: as given %.4g, greedy %.4g, exact %s: %s", e.Given.Busiest,
		e.Greedy.Busiest, exact, taken)
}
