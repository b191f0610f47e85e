package p2p

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/streams"
)

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
		return "", "", fmt.Errorf("p2p: no %s path from device %v to %v: %s; use path staged or auto", want, from, to, link.Why)
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
