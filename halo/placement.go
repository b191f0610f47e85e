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

// Placement says which device owns which subdomain.
//
// Where several processes share a grid, each has a placement of all its subdomains, with the
// devices of its own. It allocates, fills and exchanges only what lies on these; whatever goes
// by rank, as streams and arrays, has nothing for the others.
type Placement struct {
	*domain.Decomposition
	Devices   []*streams.Device // by rank of the subdomain; nil where another process owns it
	Mapping   *Explanation      // how MapDevices came to the order of the devices; nil where it was not asked
	Processes *mpi.Processes    // which share the grid; mpi.Alone where this one has all of it
	Owners    []int             // by rank of the subdomain: the rank of its process
	Path      p2p.Path          // what plans take that leave it to p2p.Auto, as Cutting.Path says; "" is the fastest
}

// Place gives subdomain i to device i. There must be as many of one as of the
// other.
func Place(d *domain.Decomposition, devices []*streams.Device) (*Placement, error) {
	if d == nil {
		return nil, errors.New("halo: a placement of no subdomains: the decomposition is nil")
	}
	if len(d.Subdomains) != len(devices) {
		return nil, fmt.Errorf("halo: %d subdomains (%v) for %d devices", len(d.Subdomains), d.Parts, len(devices))
	}
	p := placeAlone(d, devices)
	return p, p.usable()
}

// placeAlone is Place without a check.
func placeAlone(d *domain.Decomposition, devices []*streams.Device) *Placement {
	return &Placement{
		Decomposition: d, Devices: devices, Processes: mpi.Alone(), Owners: make([]int, len(d.Subdomains)),
	}
}

// PlaceAmong places subdomains on devices of several processes: owners has the process of each,
// by rank of the subdomain, and devices the device of each that this process owns, nil for the
// others. All processes give the same decomposition and owners.
func PlaceAmong(processes *mpi.Processes, d *domain.Decomposition, owners []int, devices []*streams.Device) (*Placement,
	error) {
	switch {
	case processes.IsAlone():
		return Place(d, devices)
	case d == nil:
		return nil, errors.New("halo: a placement of no subdomains: the decomposition is nil")
	case len(d.Subdomains) != len(owners) || len(owners) != len(devices):
		return nil, fmt.Errorf("halo: %d subdomains (%v) with %d owners and %d devices", len(d.Subdomains), d.Parts,
			len(owners), len(devices))
	}
	for rank, owner := range owners {
		if owner < 0 || owner >= processes.Size() {
			return nil, fmt.Errorf("halo: subdomain %d is owned by process %d of %d", rank, owner, processes.Size())
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

// FirstDevice returns the device of the first subdomain of this process, nil where it owns none.
func (p *Placement) FirstDevice() *streams.Device {
	for _, d := range p.Devices {
		if d != nil {
			return d
		}
	}
	return nil
}

// usable returns an error unless there is a placement, with a device for every subdomain that is
// this process's, and none for any other.
func (p *Placement) usable() error {
	if p == nil || p.Decomposition == nil {
		return errors.New("halo: the placement is nil")
	}
	if len(p.Devices) != len(p.Subdomains) || len(p.Owners) != len(p.Subdomains) || p.Processes == nil {
		return fmt.Errorf("halo: the placement has no device for some of its %d subdomains", len(p.Subdomains))
	}
	for rank, d := range p.Devices {
		switch local := p.IsLocal(rank); {
		case local && d == nil:
			return fmt.Errorf("halo: the placement has no device for some of its %d subdomains, as for %d",
				len(p.Subdomains), rank)
		case !local && d != nil:
			return fmt.Errorf("halo: the placement has device %v for subdomain %d, which process %d owns", d, rank,
				p.Owners[rank])
		}
	}
	return nil
}

// wanted returns the path that a plan is to take: where that is Auto, the placement's own.
func (p *Placement) wanted(path p2p.Path) p2p.Path {
	if path == p2p.Auto && p.Path != "" {
		return p.Path
	}
	return path
}

// onOneDevice reports whether two subdomains lie on the same device, as far as this process knows.
func (p *Placement) onOneDevice(a, b int) bool {
	return a == b || p.Devices[a] != nil && p.Devices[a] == p.Devices[b]
}

// crosses reports whether messages may go from one device of this process to another.
func (p *Placement) crosses() bool {
	first := p.FirstDevice()
	return slices.ContainsFunc(p.Devices, func(d *streams.Device) bool { return d != nil && d != first })
}

// isDry reports whether the devices only count.
func (p *Placement) isDry() bool {
	d := p.FirstDevice()
	return d != nil && d.IsDry()
}

// agree returns the error, or where processes share grids an error if any of them has one. All
// call it.
func (d Devices) agree(ctx context.Context, what string, err error) error {
	if ctx == nil { // which the others are told
		ctx, err = context.Background(), cmp.Or(err, errNoContext)
	}
	return d.Processes.Agree(ctx, what, err)
}

// Agree returns the error, or where processes share the grid an error if any of them has one: it is how they do
// something in step that each may fail at. All call it. What wraps one of kinds on one process does on all. In a dry
// run // it returns the error.
func (p *Placement) Agree(ctx context.Context, what string, err error, kinds ...error) error {
	if p == nil || p.isDry() {
		return err
	}
	return p.Processes.Agree(ctx, "halo: "+what, err, kinds...)
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
		return nil, optionError("Devices.Count",
			"%d were asked for; of the %d %ss of host %s, which %d processes share, this one has %d",
			d.Count, n, first.Noun, d.Processes.Hosts[d.Processes.Rank], count, len(part))
	}
	if d.Count > 0 && len(d.IDs) == 0 {
		part = part[:d.Count]
	}
	return part, nil
}

// count returns how many devices each process has opened. All processes call it.
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

// Split cuts what a subdomain owns into its boundary region, with the given layers
// at the sides where there is a neighbour, and its interior, see domain.Split. One
// who sweeps the boundary region first can exchange it while the interior is
// swept. Neighbours need at a low side as many layers as their fields have ghosts
// at the high side, and the other way round.
func (p *Placement) Split(rank int, layers domain.Radius) (interior domain.Box, boundary []domain.Box) {
	for _, side := range domain.Faces(p.Grid.Dims) {
		if _, ok := p.Neighbour(rank, side); ok {
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

// Kernels makes two launches ready for every subdomain, by rank, one over the
// boundary region and one over the interior that Split gives, and nil where that
// has no points. kernel makes a launch over boxes; its error ends this, and so does a panic in it.
func (p *Placement) Kernels(layers domain.Radius, kernel func(rank int, boxes []domain.Box) (*streams.Kernel,
	error)) (boundary, interior []*streams.Kernel, err error) {
	if kernel == nil {
		return nil, nil, errors.New("halo: kernels that no function makes")
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

// Streams is a stream for every subdomain of a placement, by rank, as Start and
// Wait take them; nil for those of other processes.
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

// Launch queues a kernel on every stream, by rank, and nothing where it is nil.
func (at Streams) Launch(byRank []*streams.Kernel) error {
	if len(byRank) != len(at) {
		return fmt.Errorf("halo: %d kernels for %d subdomains", len(byRank), len(at))
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

// Sync makes the host wait until every stream has done all that was queued, for
// at most limit each.
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

// Close closes the streams. Those of several devices are waited for together.
func (at Streams) Close() error {
	var all streams.Resources
	for _, s := range at {
		if s != nil {
			all.Add(s)
		}
	}
	return all.Close()
}

// maxSearched is the largest number of subdomains whose orders are all searched.
const maxSearched = 8

// same is the relative difference of two costs that are taken for equal: they are
// sums in any order.
const same = 1e-9

// margin is what share of the cost another order must save to be taken in place of
// the given one: links that are alike never measure quite alike.
const margin = 0.05

// Cost is what an exchange costs under an order of the devices, in the unit of the
// cost function. A device sends its messages one after the other, and gets its
// messages one after the other at the same time.
type Cost struct {
	Busiest float64 // what the busiest device sends, or gets, whichever is more
	Total   float64 // of all messages
}

// less compares the busiest devices, and among equals the totals.
func (c Cost) less(d Cost) bool {
	if c.Busiest < d.Busiest*(1-same) {
		return true
	}
	return c.Busiest <= d.Busiest*(1+same) && c.Total < d.Total*(1-same)
}

// worthwhile reports whether c saves enough of d.
func (c Cost) worthwhile(d Cost) bool {
	const most = 1 - margin
	return c.Busiest < most*d.Busiest || c.Busiest <= d.Busiest*(1+same) && c.Total < most*d.Total
}

// Explanation says how MapDevices came to its order.
type Explanation struct {
	Given    Cost  // of subdomain i on device i
	Greedy   Cost  // of the greedy order
	Exact    Cost  // of the best order of all; as Greedy where they are too many
	Searched bool  // all orders were searched
	Kept     bool  // the given order stays
	Order    []int // by rank, an index into the devices given
}

// String gives the costs and the order in one line.
func (e Explanation) String() string {
	exact := fmt.Sprintf("not searched beyond %d subdomains", maxSearched)
	if e.Searched {
		exact = fmt.Sprintf("%.4g", e.Exact.Busiest)
	}
	taken := fmt.Sprintf("subdomains lie on devices %v of those given", e.Order)
	if e.Kept {
		taken = "the devices stay in the order given"
	}
	return fmt.Sprintf("cost of the busiest device: as given %.4g, greedy %.4g, exact %s: %s", e.Given.Busiest,
		e.Greedy.Busiest, exact, taken)
}
