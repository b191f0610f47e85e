package p2p

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

func hostDevices(t testing.TB, n int) []*streams.Device {
	t.Helper()
	devices := test.Must(streams.HostPlatform(n).Open())(t)
	t.Cleanup(func() { streams.CloseAll(devices) })
	return devices
}

func TestCPULinksAreUsable(t *testing.T) {
	d := hostDevices(t, 3)
	links := test.Must(Discover(t.Context(), d, nil))(t)
	for i := range 9 {
		a, b := d[i/3], d[i%3]
		if link := links.Between(a, b); (link == nil) != (a == b) || link != nil && (!link.Access || !link.Usable || link.Kind != "memory") {
			t.Errorf("link %v to %v: got %+v", a, b, link)
		}
	}
}

func TestChoose(t *testing.T) {
	d := []*streams.Device{{Info: streams.Info{Backend: streams.CUDA}}, {Info: streams.Info{Backend: streams.CUDA, ID: 1}}}
	stranger := hostDevices(t, 1)[0]
	good, bad := &Link{Usable: true}, &Link{Why: "it corrupts data"}
	links := &Links{links: map[[2]*streams.Device]*Link{{d[0], d[1]}: good, {d[1], d[0]}: bad}}
	for _, c := range []struct {
		name     string
		want     Path
		from, to *streams.Device
		path     Path
		says     string
	}{
		{"auto over a good link", Auto, d[0], d[1], Peer, "usable"},
		{"auto over a bad link", Auto, d[1], d[0], Staged, "it corrupts data"},
		{"peer over a good link", Peer, d[0], d[1], Peer, "requested"},
		{"peer over a bad link", Peer, d[1], d[0], "", "it corrupts data; use path staged"},
		{"staged over a good link", Staged, d[0], d[1], Staged, "requested"},
		{"to itself", Staged, d[0], d[0], Direct, "same device"},
		{"to an unknown device", Auto, d[0], stranger, "", "not probed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, why, err := links.Choose(c.want, c.from, c.to, MessageShape{Bytes: 8})
			if err != nil {
				why = err.Error()
			}
			if path != c.path || !strings.Contains(why, c.says) {
				t.Errorf("got %q, %q, %v", path, why, err)
			}
		})
	}
}

func TestRoutesMoveTheirBytes(t *testing.T) {
	moveBytes(t, hostDevices(t, 2), nil)
	d := hostDevices(t, 1)[0]
	m, _ := d.Alloc(8)
	for _, bad := range []struct {
		path     Path
		dst, src streams.Span
	}{{Auto, m.All(), m.All()}, {Peer, m.Span(0, 4), m.All()}, {Peer, m.Span(0, 0), m.Span(0, 0)}} {
		if _, err := NewRoute(bad.path, bad.dst, bad.src); err == nil {
			t.Errorf("route %+v: got no error", bad)
		}
	}
}

// moveBytes sends bytes from the first device to the second by routes of each path, with offsets. It calls moved
// after each.
func moveBytes(t *testing.T, d []*streams.Device, moved func(path Path)) {
	t.Helper()
	const n, at, limit = 999, 8, 2 * time.Minute
	for _, path := range []Path{Peer, Staged} {
		in, err1 := d[0].AllocPinned(n + at)
		src, err2 := d[0].Alloc(n + at)
		dst, err3 := d[1].Alloc(n + 2*at)
		out, err4 := d[1].AllocPinned(n + 2*at)
		sender, err5 := d[0].NewStream(streams.Normal)
		receiver, err6 := d[1].NewStream(streams.Normal)
		r, err7 := NewRoute(path, dst.Span(2*at, n), src.Span(at, n))
		test.Check(t, errors.Join(err1, err2, err3, err4, err5, err6, err7))
		rand.NewChaCha8([32]byte{7}).Read(in.Bytes())
		clear(out.Bytes())
		if err := errors.Join(
			receiver.Copy(dst.All(), out.All()), receiver.Sync(limit),
			sender.Copy(src.All(), in.All()), r.Push(sender), sender.Sync(limit),
			r.Pull(receiver), receiver.Copy(out.All(), dst.All()), receiver.Sync(limit), r.Close(), r.Close(),
		); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), append(make([]byte, 2*at), in.Bytes()[at:]...)) {
			t.Errorf("path %s: the bytes must arrive at their offset, and nowhere else", path)
		}
		if moved != nil {
			moved(path)
		}
	}
}

func TestCompareNamesTheLink(t *testing.T) {
	d := hostDevices(t, 2)
	sent := make([]byte, 64)
	rand.NewChaCha8([32]byte{1}).Read(sent)
	got := bytes.Clone(sent)
	test.Check(t, Compare(d[0], d[1], sent, got))
	got[9]++
	got[40]++
	err := Compare(d[0], d[1], sent, got)
	if err == nil || !strings.Contains(err.Error(), "host 0 to host 1 corrupts data: of 64 bytes sent, 2 arrived wrong, the first at 9") {
		t.Error(err)
	}
}

// Without a driver NVML cannot be initialized, and must not be called afterwards.
func TestNVML(t *testing.T) {
	n, err := OpenNVML()
	if err != nil {
		t.Skip("SKIPPED: no NVML here: ", err)
	}
	defer n.Close()
	if _, err := n.Link("ffff:ff:ff.0", "ffff:ff:fe.0"); err == nil {
		t.Error("Link of missing GPUs: got no error")
	}
}

// Every pair occurs exactly once, and each device at most once per round.
func TestRounds(t *testing.T) {
	for n := range 10 {
		seen := map[[2]int]int{}
		all := rounds(n)
		for _, round := range all {
			busy := map[int]bool{}
			for _, pair := range round {
				if pair[0] >= pair[1] || pair[1] >= n || busy[pair[0]] || busy[pair[1]] {
					t.Errorf("%d devices: got round %v", n, round)
				}
				busy[pair[0]], busy[pair[1]] = true, true
				seen[pair]++
			}
		}
		if len(seen) != n*(n-1)/2 || n > 1 && len(all) != n+n%2-1 {
			t.Errorf("%d devices: got %v", n, all)
		}
		for pair, times := range seen {
			if times != 1 {
				t.Errorf("%d devices: %v occurs %d times", n, pair, times)
			}
		}
	}
}
