package streams

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/internal/host"
	"github.com/halox/halox/internal/test"
)

// limited opens n host devices of a host that has so many bytes, of which the process holds what the test says.
func limited(t *testing.T, n int, free int64, resident *int64) []*Device {
	t.Helper()
	devices := hostDevices(t, n)
	ledger := devices[0].driver.host()
	ledger.now = func() (host.Memory, error) {
		return host.Memory{Free: free - *resident, Total: 2 * free, Resident: *resident, Source: "a test"}, nil
	}
	return devices
}

// Devices and pinned memory share what the host has; what was allocated counts before it is touched, once.
func TestHostMemoryIsShared(t *testing.T) {
	resident := int64(0)
	d := limited(t, 2, 1000, &resident)
	a := test.Must(d[0].Alloc(400))(t)
	b := test.Must(d[1].AllocPinned(300))(t)
	_, err := d[1].Alloc(301)
	for _, says := range []string{"device host 1: allocate device memory: 301 bytes: out of memory: 301 B are needed, and 300 B of the host's memory are available: a test"} {
		if !errors.Is(err, ErrOutOfMemory) || err.Error() != says {
			t.Errorf("got %v", err)
		}
	}
	resident = 700 // all is touched: it is not free twice
	if free, total, err := d[0].MemoryInfo(); free != 300 || total != 2000 || err != nil {
		t.Errorf("%d of %d are free: %v", free, total, err)
	}
	resident = 0
	test.Check(t, a.Close(), b.Close())
	test.Must(d[1].Alloc(1000))(t)
	if info, err := d[0].HostMemoryInfo(); info != (HostInfo{Free: 0, Total: 2000, Source: "a test"}) || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
}

// However many allocate at once, no more is given than there is.
func TestHostMemoryIsGivenOnce(t *testing.T) {
	resident := int64(0)
	d := limited(t, 4, 1000, &resident)
	var group sync.WaitGroup
	for _, one := range d {
		for range 8 {
			group.Go(func() {
				for range 8 { // together more than there is
					_, _ = one.Alloc(7)
					_, _ = one.AllocPinned(3)
				}
			})
		}
	}
	group.Wait()
	sum := int64(0)
	for _, one := range d {
		now, most := one.Held(), one.Peak()
		if now != most {
			t.Errorf("%v holds %+v and held %+v", one, now, most)
		}
		sum += now.Memory + now.Pinned
	}
	if sum > 1000 || sum < 994 || sum != d[0].driver.host().used {
		t.Errorf("%d bytes of 1000 were given", sum)
	}
}

// A look at the host serves for a while, and not for more than a part of what it found.
func TestLooksAtTheHost(t *testing.T) {
	looks := 0
	l := &hostLedger{now: func() (host.Memory, error) {
		looks++
		return host.Memory{Free: 1600, Total: 1600}, nil
	}}
	test.Check(t, l.take(16), l.take(50), l.take(40))
	if looks != 1 {
		t.Errorf("%d looks", looks)
	}
	if test.Check(t, l.take(20)); looks != 2 {
		t.Errorf("%d looks", looks)
	}
	l.then = time.Now().Add(-time.Second)
	if test.Check(t, l.take(1)); looks != 3 {
		t.Errorf("%d looks", looks)
	}
}

// No size makes an allocation panic, on a host that knows what it has or not.
func TestSizesBeyondTheHost(t *testing.T) {
	for _, known := range []bool{true, false} {
		d := hostDevices(t, 1)[0]
		if !known {
			d.driver.host().now = nil
		}
		for _, bytes := range []int64{1 << 47, 1 << 62, math.MaxInt64 - 127, math.MaxInt64} {
			for _, alloc := range []func(int64) (*Memory, error){d.Alloc, d.AllocPinned, DryRun([]*Device{d})[0].Alloc} {
				test.Is(t, test.ErrorOf(alloc(bytes)), ErrOutOfMemory)
			}
		}
	}
}

// What is wanted of devices that share the host's memory is added up, whatever the numbers.
func TestFit(t *testing.T) {
	resident := int64(0)
	d := limited(t, 2, 1000, &resident)
	want := func(memory, pinned int64) []Demand {
		return []Demand{{d[0], Held{memory, pinned}}, {d[1], Held{memory, pinned}}}
	}
	test.Check(t, Fit(want(300, 200)), Fit(nil))
	for _, all := range [][]Demand{want(301, 200), want(0, 501), want(math.MaxInt64, math.MaxInt64)} {
		if err := Fit(all); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "1000 B of 2 KiB are available: a test") {
			t.Errorf("%v: %v", all, err)
		}
	}
	test.Is(t, Fit(want(-1, 0)), ErrOutOfMemory)
	dry := DryRun(d)
	test.Check(t, Fit([]Demand{{dry[0], Held{1 << 60, 0}}}))
	d[0].driver.host().now = nil
	test.Check(t, Fit(want(1<<60, 0)))
}
