package ranks

import (
	"strings"
	"testing"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// A message that asks for what there is not is an error, whatever it says: a progress loop has no caller that could
// catch a panic.
func TestWrongMessages(t *testing.T) {
	h := newHostState(&topology{devices: make([]*streams.Device, 1), owners: []int{0, 1}, remote: &remote{processes: &mpi.Processes{Rank: 0}}, ranks: 2}, false)
	h.windows[0][1] = streams.View[byte](make([]byte, 64))
	p := &progressLoop{h: h}
	for name, tc := range map[string]struct {
		msg  message
		body int
	}{
		"a kind that there is not":     {message{what: 99}, 0},
		"for a rank below 0":           {message{what: msgPut, to: -1}, 8},
		"for a rank of another":        {message{what: msgPut, to: 2}, 8},
		"for a rank above all":         {message{what: msgNotify, to: 4}, 0},
		"for a rank of many bits":      {message{what: msgNotify, to: 1 << 32}, 0},
		"of a rank above all":          {message{what: msgValues, to: 1, from: 4}, 0},
		"of a rank below 0":            {message{what: msgWindow, from: -1}, 0},
		"a window that there is not":   {message{what: msgWindow, from: 2, slot: 2 * MaxWindows}, 0},
		"a put to no window":           {message{what: msgPut, to: 1, slot: -1}, 8},
		"a put beyond a window":        {message{what: msgPut, to: 1, at: 60}, 8},
		"a get beyond a window":        {message{what: msgGet, to: 1, from: 2, n: 65}, 0},
		"a get of less than nothing":   {message{what: msgGet, to: 1, from: 2, n: -1}, 0},
		"a packet of half a word":      {message{what: msgPacket, to: 1}, 6},
		"a packet at any place":        {message{what: msgPacket, to: 1, at: 4}, 8},
		"a tag that there is not":      {message{what: msgNotify, to: 1, at: Tags}, 0},
		"a tag below 0":                {message{what: msgNotify, to: 1, at: -1}, 0},
		"more values than called":      {message{what: msgValues, to: 1, from: 2, n: int64(callOf[float32](reduce, 1, Sum, 0))}, 8},
		"a channel that there is not":  {message{what: msgSent, to: 1}, 8},
		"read of a channel of no name": {message{what: msgRead, to: 1, slot: -1}, 0},
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
	if err := p.take(1, message{what: 99}, nil); err != nil || p.h.reason() == nil || !strings.Contains(p.h.reason().Error(), "a message of kind 99") {
		t.Errorf("a message of which nothing can be done gives %v, and the run ends with %v", err, p.h.reason())
	}
}

// Two who come one after the other to two barriers, one of them early, are not taken for three.
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
