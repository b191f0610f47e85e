package streams_test

import (
	"fmt"
	"time"

	"github.com/halox/halox/streams"
)

// A tracer shows what a stream does in steps 2 and 3 of five.
func ExampleTracer() {
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer streams.CloseAll(devices)
	d := devices[0]
	tracer, err := streams.NewTracer(devices, streams.Window{First: 2, Last: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tracer.Close()

	s, err1 := d.NewStream(streams.Normal) // after the tracer
	s.SetName("compute")
	sweep, err2 := d.NewKernel(streams.KernelSpec{Name: "sweep", Work: streams.Sweep, Run: func() {}})
	from, err3 := d.Alloc(800)
	to, err4 := d.AllocPinned(800)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for step := range int64(5) {
		s.BeginStep(step)
		s.Launch(sweep)
		s.Copy(to.All(), from.All())
	}
	s.Sync(time.Second)

	for _, device := range tracer.Trace().Devices {
		for _, stream := range device.Streams {
			for _, o := range stream.Operations {
				fmt.Printf("%v, %s, step %d: %s (%s), %d bytes\n", device.Device, stream.Name, o.Step, o.Name, o.Work, o.Bytes)
			}
		}
	}
	// Output:
	// host 0, compute, step 2: sweep (sweep), 0 bytes
	// host 0, compute, step 2: copy to host (copy), 800 bytes
	// host 0, compute, step 3: sweep (sweep), 0 bytes
	// host 0, compute, step 3: copy to host (copy), 800 bytes
}
