package p2p_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// open returns two CPU devices, whose links are always usable.
func open() []*streams.Device {
	devices, err := streams.HostPlatform(2).Open()
	if err != nil {
		log.Fatal(err)
	}
	return devices
}

// For GPUs, OpenNVML returns the topology; without it the kinds are unknown.
func ExampleDiscover() {
	devices := open()
	defer streams.CloseAll(devices)
	links, err := p2p.Discover(context.Background(), devices, nil)
	if err != nil {
		log.Fatal(err)
	}
	link := links.Between(devices[0], devices[1])
	fmt.Println(link.From, "to", link.To, link.Kind, link.Usable)
	// Output: host 0 to host 1 memory true
}

// A probe sends data over a link and compares the received data.
func ExampleProbe() {
	devices := open()
	defer streams.CloseAll(devices)
	fmt.Println(p2p.Probe(devices[0], devices[1]))
	// A link that corrupts data gives an error that names it.
	var err error = &p2p.Fault{From: devices[0], To: devices[1], Offset: 4096, Wrong: 12, Of: 1 << 20}
	fmt.Println(err)
	// Output:
	// <nil>
	// the link from device host 0 to host 1 corrupts data: of 1048576 bytes sent, 12 arrived wrong, the first at 4096
}

func ExampleLinks_Choose() {
	devices := open()
	defer streams.CloseAll(devices)
	links, err := p2p.Discover(context.Background(), devices, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, want := range []p2p.Path{p2p.Auto, p2p.Staged, "tunnel"} {
		path, why, err := links.Choose(want, devices[0], devices[1], p2p.MessageShape{Bytes: 1 << 20})
		if err != nil {
			why = err.Error()
		}
		fmt.Printf("%q: %s\n", path, why)
	}
	// Output:
	// "peer": the link is usable
	// "staged": requested
	// "": p2p: path: must be auto, peer, direct or staged, got "tunnel"
}

// A route moves the same block repeatedly. Its two halves are queued by the sender and by the receiver.
func ExampleRoute() {
	devices := open()
	defer streams.CloseAll(devices)
	src, err1 := devices[0].Alloc(5)
	dst, err2 := devices[1].Alloc(5)
	out, err3 := devices[0].NewStream(streams.Normal)
	in, err4 := devices[1].NewStream(streams.Normal)
	sent, err5 := devices[0].NewEvent()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		log.Fatal(err)
	}
	copy(src.Bytes(), "hello")
	route, err := p2p.NewRoute(p2p.Staged, dst.All(), src.All())
	if err != nil {
		log.Fatal(err)
	}
	defer route.Close()
	err = errors.Join(route.Push(out), out.Record(sent), in.Wait(sent), route.Pull(in), in.Sync(time.Minute))
	fmt.Printf("%s %v\n", dst.Bytes(), err)
	// Output: hello <nil>
}

// Between measured sizes, the time is linear.
func ExampleCurve_Time() {
	c := p2p.NewCurve(
		p2p.Sample{Bytes: 1 << 10, Time: 5 * time.Microsecond},
		p2p.Sample{Bytes: 1 << 20, Time: 8 * time.Microsecond},
		p2p.Sample{Bytes: 1 << 24, Time: 48 * time.Microsecond},
	)
	for _, bytes := range []int64{8, 1 << 19, 1 << 23, 1 << 26} {
		fmt.Println(streams.Size(bytes), "in", p2p.Microseconds(c.Time(bytes)))
	}
	// Output:
	// 8 B in 5.0 us
	// 512 KiB in 6.5 us
	// 8 MiB in 26.7 us
	// 64 MiB in 176 us
}
