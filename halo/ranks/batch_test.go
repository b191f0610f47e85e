package ranks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Stores to consecutive addresses, in any order of arrival, are one copy; others are copied separately.
// Overlaps are reported.
func TestBatch(t *testing.T) {
	d := testdevices.Host(t, 1).Devices[0]
	room := test.Must(d.AllocPinned(commands * batchedMost))(t)
	defer room.Close()
	payloads := test.Must(d.AllocPinned(commands * batchedMost))(t)
	defer payloads.Close()
	j := batch{room: room}
	give := func(i int, device, at, bytes uint64) {
		c := &command{what: store, device: device, at: at, bytes: bytes}
		from := payloads.Span(int64(i)*batchedMost, int64(bytes))
		for k := range bytes {
			c.payload[k] = byte(at + k)
			payloads.Bytes()[uint64(i)*batchedMost+k] = byte(at + k)
		}
		if !j.takes(c) || j.overlaps(c) {
			t.Fatalf("a store of %d bytes at %d of device %d is not accepted", bytes, at, device)
		}
		j.add(c, from)
	}
	for range 2 { // a second batch starts in the same state
		for i, s := range [][3]uint64{{1, 116, 16}, {0, 100, 16}, {1, 100, 16}, {1, 132, 4}, {1, 200, 256}, {0, 117, 8}, {1, 456, 1}} {
			give(i, s[0], s[1], s[2])
		}
		for _, c := range []command{
			{what: store, device: 1, at: 131, bytes: 1}, {what: store, device: 0, at: 90, bytes: 11}, {what: store, device: 1, at: 455, bytes: 3},
		} {
			if !j.overlaps(&c) {
				t.Errorf("%d bytes at %d of device %d overlap nothing", c.bytes, c.at, c.device)
			}
		}
		for _, c := range []command{{what: store, device: 0, at: 116, bytes: 1}, {what: store, device: 2, at: 100, bytes: 400}} {
			if j.overlaps(&c) {
				t.Errorf("%d bytes at %d of device %d overlap others", c.bytes, c.at, c.device)
			}
		}
		var got []string
		err := j.flush(func(device, at uint64, from streams.Span) error {
			got = append(got, fmt.Sprint(device, at, from.Length))
			for k, v := range from.Memory.Bytes()[from.Offset:][:from.Length] {
				if v != byte(at+uint64(k)) {
					t.Errorf("byte %d of %d is %d", k, at, v)
				}
			}
			return nil
		})
		if want := []string{"0 100 16", "0 117 8", "1 100 36", "1 200 257"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("copies %q, %v, want %q", got, err, want)
		}
		j.used = 0
	}
	for _, c := range []command{{what: fetch, bytes: 8}, {what: raise, bytes: 8}, {what: store, bytes: batchedMost + 1}} {
		if j.takes(&c) {
			t.Errorf("a command of kind %d with %d bytes is accepted", c.what, c.bytes)
		}
	}
	for i := range commands {
		give(i, 1, uint64(1000*i), 8)
	}
	if j.takes(&command{what: store, bytes: 8}) {
		t.Error("a batch accepts more stores than a ring has commands")
	}
}

// An invalid message is an error for any content: a progress loop has no caller that could catch a panic.
func TestWrongMessages(t *testing.T) {
	h := newHostState(&topology{devices: make([]*streams.Device, 1), owners: []int{0, 1}, remote: &remote{processes: &mpi.Processes{Rank: 0}}, ranks: 2}, false)
	h.windows[0][1] = streams.View[byte](make([]byte, 64))
	p := &progressLoop{h: h}
	for name, tc := range map[string]struct {
		msg  message
		body int
	}{
		"an unknown kind":            {message{what: 99}, 0},
		"for a rank below 0":         {message{what: msgPut, to: -1}, 8},
		"for another process":        {message{what: msgPut, to: 2}, 8},
		"for a rank above all":       {message{what: msgNotify, to: 4}, 0},
		"for a rank of many bits":    {message{what: msgNotify, to: 1 << 32}, 0},
		"of a rank above all":        {message{what: msgValues, to: 1, from: 4}, 0},
		"of a rank below 0":          {message{what: msgWindow, from: -1}, 0},
		"an unknown window":          {message{what: msgWindow, from: 2, slot: 2 * MaxWindows}, 0},
		"a put to no window":         {message{what: msgPut, to: 1, slot: -1}, 8},
		"a put beyond a window":      {message{what: msgPut, to: 1, at: 60}, 8},
		"a get beyond a window":      {message{what: msgGet, to: 1, from: 2, n: 65}, 0},
		"a get of negative size":     {message{what: msgGet, to: 1, from: 2, n: -1}, 0},
		"a packet of half a word":    {message{what: msgPacket, to: 1}, 6},
		"an unaligned packet":        {message{what: msgPacket, to: 1, at: 4}, 8},
		"an invalid tag":             {message{what: msgNotify, to: 1, at: Tags}, 0},
		"a tag below 0":              {message{what: msgNotify, to: 1, at: -1}, 0},
		"more values than called":    {message{what: msgValues, to: 1, from: 2, n: int64(callOf[float32](reduce, 1, Sum, 0))}, 8},
		"an unknown channel":         {message{what: msgSent, to: 1}, 8},
		"read of an unknown channel": {message{what: msgRead, to: 1, slot: -1}, 0},
	} {
		if err := p.do(1, tc.msg, make([]byte, tc.body)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, msg := range map[string]message{"a put": {what: msgPut, to: 1, at: 56}, "a packet": {what: msgPacket, to: 1, at: 48}, "a notification": {what: msgNotify, to: 1, at: Tags - 1}} {
		if err := p.do(1, msg, make([]byte, 8)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.take(1, message{what: 99}, nil); err != nil || p.h.reason() == nil || !strings.Contains(p.h.reason().Error(), "a message has unknown kind 99") {
		t.Errorf("an invalid message gives %v, and the run ends with %v", err, p.h.reason())
	}
}

// Two processes that arrive at two barriers, one of them early, do not count as three.
func TestArrivals(t *testing.T) {
	var a arrivals
	a.begin()
	for i, step := range []struct {
		comes        uint64 // to which barrier
		first, other bool   // whether both have come to this barrier, and to the next
	}{
		{1, false, false}, {2, false, false}, {1, true, false}, {2, true, true},
	} {
		a.add(step.comes)
		if first, second := a.haveCome(1, 2), a.haveCome(2, 2); first != step.first || second != step.other {
			t.Errorf("after %d arrivals: at the first barrier %t, at the second %t", i+1, first, second)
		}
	}
	a.add(3)
	if a.haveCome(3, 2) {
		t.Error("one of two has come to the third barrier")
	}
	if a.add(3); !a.haveCome(3, 2) || a.haveCome(4, 2) {
		t.Error("both have come to the third barrier")
	}
}
