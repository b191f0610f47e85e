package ranks

import (
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// Stores whose addresses follow each other, in whatever order they came, are one copy; others are copied alone. What
// overlaps is told.
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
			t.Fatalf("a store of %d bytes at %d of device %d is not taken", bytes, at, device)
		}
		j.add(c, from)
	}
	for range 2 { // a second batch finds all as it was
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
			t.Errorf("a command of kind %d with %d bytes is taken", c.what, c.bytes)
		}
	}
	for i := range commands {
		give(i, 1, uint64(1000*i), 8)
	}
	if j.takes(&command{what: store, bytes: 8}) {
		t.Error("there is room for more stores than a ring has commands")
	}
}
