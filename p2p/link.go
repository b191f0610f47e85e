package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/halox/halox/streams"
)

// Link is one direction between two devices.
type Link struct {
	From   *streams.Device // sender
	To     *streams.Device // receiver
	Kind   string          // as in nvidia-smi topo: "NV18", "PIX", ...; "memory" of CPU devices; "" if unknown
	Access bool            // the driver allows peer access
	Usable bool            // a probe arrived unchanged
	Why    string          // why it is not usable; "" if it is
}

// Links holds all links among some devices. Links between CPU devices are identical, a copy in memory, and are not
// stored.
type Links struct {
	Model *LinkModel // how long messages take; nil if not measured
	links map[[2]*streams.Device]*Link
}

// Topology describes how two GPUs, given by PCI bus id, are linked.
type Topology interface {
	Link(busA, busB string) (kind string, err error)
}

// Discover queries how GPUs are linked, enables peer access where the driver allows it, and probes each link with
// data in both directions. Links without a common device are probed concurrently. The topology, which is queried
// by a separate goroutine, may be nil; the kinds of links are then unknown. If the context ends, the search ends
// before the next link.
func Discover(ctx context.Context, devices []*streams.Device, topology Topology) (*Links, error) {
	if slices.Contains(devices, nil) {
		return nil, errNoDevice
	}
	l := &Links{links: map[[2]*streams.Device]*Link{}}
	var found []*Link
	for _, from := range devices {
		for _, to := range devices {
			if from == to || shareMemory(from, to) {
				continue
			}
			if err := interrupted(ctx); err != nil {
				return nil, err
			}
			link, err := inspect(from, to)
			if err != nil {
				return nil, err
			}
			found = append(found, link)
			l.links[[2]*streams.Device{from, to}] = link
		}
	}
	if len(found) == 0 {
		return l, nil
	}
	named := make(chan struct{})
	go func() {
		defer close(named)
		for _, link := range found {
			link.Kind = Kind(link.From.Info, link.To.Info, topology)
		}
	}()
	err := l.prove(ctx, eachOnce(devices))
	<-named
	if err != nil {
		return nil, err
	}
	return l, nil
}

// prove probes the links between all devices.
func (l *Links) prove(ctx context.Context, devices []*streams.Device) error {
	for _, round := range rounds(len(devices)) {
		errs := make([]error, len(round))
		var group sync.WaitGroup
		for i, pair := range round {
			group.Go(func() { errs[i] = l.provePair(ctx, devices[pair[0]], devices[pair[1]]) })
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// eachOnce returns the devices without duplicates.
func eachOnce(devices []*streams.Device) (once []*streams.Device) {
	for _, d := range devices {
		if !slices.Contains(once, d) {
			once = append(once, d)
		}
	}
	return once
}

// provePair probes the links between two devices that have peer access.
func (l *Links) provePair(ctx context.Context, a, b *streams.Device) error {
	for _, ends := range [][2]*streams.Device{{a, b}, {b, a}} {
		link := l.links[ends]
		if link == nil || !link.Access {
			continue
		}
		if err := interrupted(ctx); err != nil {
			return err
		}
		if err := link.prove(); err != nil {
			return err
		}
	}
	return nil
}

// rounds returns all pairs of n devices, each once, in rounds in which each device is in at most one pair.
func rounds(n int) (all [][][2]int) {
	even := n + n%2 // for an odd n one device is a dummy, and its partner is idle
	for r := range max(0, even-1) {
		var round [][2]int
		for i := range even / 2 {
			a, b := (r+i)%(even-1), (r+even-1-i)%(even-1)
			if i == 0 {
				b = even - 1
			}
			if a, b := min(a, b), max(a, b); b < n {
				round = append(round, [2]int{a, b})
			}
		}
		all = append(all, round)
	}
	return all
}

var errNoDevice = errors.New("p2p: a device is nil")

// interrupted returns an error once the context has ended.
func interrupted(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("p2p: discover the links: %w", err)
	}
	return nil
}

// shareMemory reports whether the link is a copy within host memory.
func shareMemory(a, b *streams.Device) bool {
	return a.HostMemory && a.Backend == b.Backend
}

// inspect queries one link and enables peer access.
func inspect(from, to *streams.Device) (*Link, error) {
	link := &Link{From: from, To: to}
	ok, err := from.CanAccess(to)
	if err != nil {
		return nil, err
	}
	if !ok {
		link.Why = "the driver does not allow peer access"
		return link, nil
	}
	if err := from.EnablePeer(to); err != nil {
		if from.Err() != nil {
			return nil, err
		}
		link.Why = err.Error()
		return link, nil
	}
	link.Access = true
	return link, nil
}

// Kind returns how two devices are linked, or "" if unknown.
func Kind(a, b streams.Info, topology Topology) string {
	if topology == nil || a.PCIBusID == "" || b.PCIBusID == "" {
		return ""
	}
	kind, err := topology.Link(a.PCIBusID, b.PCIBusID)
	if err != nil {
		return ""
	}
	return kind
}

// prove sends data over the link and records whether it arrived unchanged. A link on which the copy fails is as
// unusable as one that corrupts data. If a device becomes unusable, prove returns the error.
func (l *Link) prove() error {
	err := Probe(l.From, l.To)
	if err == nil {
		l.Usable = true
		return nil
	}
	if l.From.Err() != nil || l.To.Err() != nil {
		return err
	}
	l.Why = err.Error()
	return nil
}

// Between returns the link from one device to another. It returns nil from a device to itself, for a link that was
// not probed, and if a device or l is nil.
func (l *Links) Between(from, to *streams.Device) *Link {
	if l == nil || from == nil || to == nil {
		return nil
	}
	from, to = from.Real(), to.Real()
	if from != to && shareMemory(from, to) {
		return &Link{From: from, To: to, Kind: "memory", Access: true, Usable: true}
	}
	return l.links[[2]*streams.Device{from, to}]
}

// Choose returns the path for messages of the given shape from one device to another, and the reason. Auto selects
// the fastest path by the measured Model, or a peer copy if nothing was measured, and the path through the host if
// the link is not usable. Between subdomains of one device the path is always Direct. Choose returns an error if
// the wanted path needs access over a link that is not usable.
func (l *Links) Choose(want Path, from, to *streams.Device, shape MessageShape) (path Path, why string, err error) {
	if from == nil || to == nil {
		return "", "", errNoDevice
	}
	if from == to {
		return Direct, "same device", nil
	}
	link := l.Between(from, to)
	if link == nil {
		return "", "", fmt.Errorf("p2p: the link from device %v to %v was not probed", from, to)
	}
	switch known := slices.Contains(Paths(), want); {
	case !known && want != Auto:
		return "", "", fmt.Errorf("p2p: path: must be %s, got %q", Choices(Paths()), want)
	case want.Traits().Access && !link.Usable:
		return "", "", fmt.Errorf("p2p: no %s path from device %v to %v: %s; use path staged or auto", want, from, to,
			link.Why)
	case known:
		return want, "requested", nil
	case !link.Usable:
		return Staged, link.Why, nil
	}
	path, why = l.fastest(link, shape)
	return path, why, nil
}

// fastest returns the fastest path over a usable link, and the reason.
func (l *Links) fastest(link *Link, shape MessageShape) (path Path, why string) {
	type timed struct {
		path Path
		time time.Duration
	}
	var all []timed
	for _, p := range Paths() {
		if t, ok := l.Model.Time(link.From, link.To, p, shape); ok {
			all = append(all, timed{p, t})
		}
	}
	if len(all) == 0 {
		return Peer, "the link is usable"
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.time, b.time) })
	why = fmt.Sprintf("%s: %s for %s", all[0].path, Microseconds(all[0].time), streams.Size(shape.Bytes))
	var others []string
	for _, o := range all[1:] {
		others = append(others, fmt.Sprintf("%s %s", o.path, Microseconds(o.time)))
	}
	if len(others) > 0 {
		why += "; " + strings.Join(others, ", ")
	}
	return all[0].path, why
}

// Microseconds formats a time in microseconds, such as "6.1 us" or "1204 us".
func Microseconds(t time.Duration) string {
	us := float64(t) / float64(time.Microsecond)
	if us < 100 {
		return fmt.Sprintf("%.1f us", us)
	}
	return fmt.Sprintf("%.0f us", us)
}
