package ranks

import (
	"strings"
	"testing"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// A letter that asks for what there is not is an error, whatever it says: a courier has no caller that could catch a panic.
func TestCourierRefuses(t *testing.T) {
	shape := hostShape{devices: make([]*streams.Device, 1), owners: []int{0, 1}, remote: &remote{processes: &mpi.Processes{Rank: 0}}, ranks: 2}
	h := newHostState(shape, false)
	h.windows[0][1] = streams.View[byte](make([]byte, 64))
	c := &courier{h: h}
	for name, tc := range map[string]struct {
		l    letter
		body int
	}{
		"a kind that there is not":     {letter{what: 99}, 0},
		"for a rank below 0":           {letter{what: letterPut, to: -1}, 8},
		"for a rank of another":        {letter{what: letterPut, to: 2}, 8},
		"for a rank above all":         {letter{what: letterNotify, to: 4}, 0},
		"for a rank of many bits":      {letter{what: letterNotify, to: 1 << 32}, 0},
		"of a rank above all":          {letter{what: letterTaken, to: 1, from: 4}, 0},
		"of a rank below 0":            {letter{what: letterWindow, from: -1}, 0},
		"a window that there is not":   {letter{what: letterWindow, from: 2, slot: 2 * MaxWindows}, 0},
		"a put to no window":           {letter{what: letterPut, to: 1, slot: -1}, 8},
		"a put beyond a window":        {letter{what: letterPut, to: 1, at: 60}, 8},
		"a get beyond a window":        {letter{what: letterGet, to: 1, from: 2, n: 65}, 0},
		"a get of less than nothing":   {letter{what: letterGet, to: 1, from: 2, n: -1}, 0},
		"a packet of half a word":      {letter{what: letterPacket, to: 1}, 6},
		"a packet at any place":        {letter{what: letterPacket, to: 1, at: 4}, 8},
		"a tag that there is not":      {letter{what: letterNotify, to: 1, at: Tags}, 0},
		"a tag below 0":                {letter{what: letterNotify, to: 1, at: -1}, 0},
		"a level that there is not":    {letter{what: letterValues, to: 1, slot: maxLevels}, 8},
		"a channel that there is not":  {letter{what: letterSent, to: 1}, 8},
		"read of a channel of no name": {letter{what: letterRead, to: 1, slot: -1}, 0},
	} {
		if err := c.do(1, tc.l, make([]byte, tc.body)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, l := range map[string]letter{"a put": {what: letterPut, to: 1, at: 56}, "a packet": {what: letterPacket, to: 1, at: 48}, "a notification": {what: letterNotify, to: 1, at: Tags - 1}} {
		if err := c.do(1, l, make([]byte, 8)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.take(1, letter{what: 99}, nil); err != nil || c.h.reason() == nil || !strings.Contains(c.h.reason().Error(), "a letter of kind 99") {
		t.Errorf("a letter of which nothing can be done gives %v, and the run ends with %v", err, c.h.reason())
	}
}
