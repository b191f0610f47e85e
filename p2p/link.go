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
	From, To *streams.Device
	Kind     string // "NV18", "PIX", ... as nvidia-smi topo says it; "memory" between host devices; "" if unknown
	Access   bool   // the driver says that peers can reach each other
	Usable   bool   // and data sent over the link arrived
	Why      string // why it is not usable; empty if it is
}

// Links is every link among some devices. Those between host devices are all
// alike, a copy in memory, and are not kept.
type Links struct {
	Model *LinkModel // how long messages take; nil if that was not measured
	links map[[2]*streams.Device]*Link
}

// Topology says how two GPUs, given by PCI bus id, are linked.
type Topology interface {
	Link(busA, busB string) (kind string, err error)
}

// Discover asks how GPUs are linked, enables access between all that allow it
// and proves each link with data, in both directions, and links that have no device in common
// side by side. The topology, which one goroutine asks meanwhile, may be nil;
// the kinds of links are then unknown. When the context ends, so does the search, before
// the next link.
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

// prove proves the links between all devices.
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

// eachOnce returns the devices without those that come again.
func eachOnce(devices []*streams.Device) (once []*streams.Device) {
	for _, d := range devices {
		if !slices.Contains(once, d) {
			once = append(once, d)
		}
	}
	return once
}

// provePair proves the links between two devices that have peer access.
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

// rounds returns all pairs of n devices, each once, in rounds in which no device comes twice.
func rounds(n int) (all [][][2]int) {
	even := n + n%2 // with a device that is not there, whose partner has a round to rest
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

// shareMemory reports whether the link is a copy within the memory of the host.
func shareMemory(a, b *streams.Device) bool {
	return a.HostMemory && a.Backend == b.Backend
}

// inspect asks for one link and enables it.
func inspect(from, to *streams.Device) (*Link, error) {
	link := &Link{From: from, To: to}
	ok, err := from.CanAccess(to)
	if err != nil {
		return nil, err
	}
	if !ok {
		link.Why = "the driver allows no peer access"
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

// Kind returns how two devices are linked, "" where that is not known.
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

// prove sends data over the link and records whether it arrived. A link that
// refuses the data is as unusable as one that changes it; one that kills a
// device is an error.
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

// Between returns the link from one device to another, nil from a device to
// itself, where it was not looked at, and where there are no devices or no links.
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

// Choose returns the path for messages like the message from one device to another,
// and why. Auto takes the path that is fastest for them by the measured Model, a
// peer copy where nothing was measured, and goes through the host where the link is
// not usable; between subdomains of one device all is Direct. It is an error to want
// a path that needs access over a link that is not usable.
func (l *Links) Choose(want Path, from, to *streams.Device, shape MessageShape) (path Path, why string, err error) {
	if from == nil || to == nil {
		return "", "", errNoDevice
	}
	if from == to {
		return Direct, "same device", nil
	}
	link := l.Between(from, to)
	if link == nil {
		return "", "", fmt.Errorf("p2p: the link from device %v to %v was not looked at", from, to)
	}
	switch known := slices.Contains(Paths(), want); {
	case !known && want != Auto:
		return "", "", fmt.Errorf("p2p: %q is no path: %s", want, Choices(LinksFirst()))
	case want.Traits().Access && !link.Usable:
		return "", "", fmt.Errorf("p2p: no %s path from device %v to %v: %s; use path staged or auto", want, from, to,
			link.Why)
	case known:
		return want, "asked for", nil
	case !link.Usable:
		return Staged, link.Why, nil
	}
	path, why = l.fastest(link, shape)
	return path, why, nil
}

// fastest returns the path that takes least time over a usable link.
func (l *Links) fastest(link *Link, shape MessageShape) (path Path, why string) {
	type timed struct {
		path Path
		time time.Duration
	}
	var all []timed
	for _, p := range LinksFirst() {
		if t, ok := l.Model.Time(link.From, link.To, p, shape); ok {
			all = append(all, timed{p, t})
		}
	}
	if len(all) == 0 {
		return Peer, "the link is proven"
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

// Microseconds writes a time in them, as "6.1 us" or "1204 us".
func Microseconds(t time.Duration) string {
	us := float64(t) / float64(time.Microsecond)
	if us < 100 {
		return fmt.Sprintf("%.1f us", us)
	}
	return fmt.Sprintf("%.0f us", us)
}
