package streams_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/halox/halox/streams"
)

// open returns n CPU devices. streams.CUDAPlatform("") returns the GPUs.
func open(n int) []*streams.Device {
	devices, err := streams.HostPlatform(n).Open()
	if err != nil {
		log.Fatal(err)
	}
	return devices
}

func ExampleHostPlatform() {
	devices, err := streams.HostPlatform(4).Open(1, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer streams.CloseAll(devices)
	fmt.Println(devices)
	_, err = streams.HostPlatform(4).Open(4)
	fmt.Println(err)
	// Output:
	// [host 1 host 3]
	// streams: device id: must be at least 0 and less than 4, got 4
}

// A program may use GPUs if there are any.
func ExampleCUDAPlatform() {
	platform, err := streams.CUDAPlatform("/nowhere/libcuda.so")
	if errors.Is(err, streams.ErrNoDriver) {
		platform = streams.HostPlatform(2)
	}
	fmt.Println(len(platform.Devices()), platform.Devices()[0].Backend)
	// Output: 2 host
}

// Work on a stream runs in order. The host waits only in Sync.
func ExampleStream() {
	devices := open(1)
	defer streams.CloseAll(devices)
	d := devices[0]
	host, err1 := d.AllocPinned(4 * 8)
	memory, err2 := d.Alloc(4 * 8)
	s, err3 := d.NewStream(streams.Normal)
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	double, err := d.NewKernel(streams.KernelSpec{Name: "double", Uses: []streams.Span{memory.All()}, Run: func() {
		for i, v := range streams.View[float64](memory.Bytes()) {
			streams.View[float64](memory.Bytes())[i] = 2 * v
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	copy(streams.View[float64](host.Bytes()), []float64{1, 2, 3, 4})
	err = errors.Join(
		s.Copy(memory.All(), host.All()), s.Launch(double), s.Launch(double), s.Copy(host.All(), memory.All()),
		s.Sync(time.Minute))
	fmt.Println(streams.View[float64](host.Bytes()), err)
	// Output: [4 8 12 16] <nil>
}

// The two rightmost columns of a grid of 3 rows of 5 points become a contiguous block.
func ExampleStream_CopyBox() {
	devices := open(1)
	defer streams.CloseAll(devices)
	d := devices[0]
	grid, err1 := d.AllocPinned(3 * 5 * 8)
	columns, err2 := d.AllocPinned(3 * 2 * 8)
	s, err3 := d.NewStream(streams.Normal)
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	for i := range streams.View[float64](grid.Bytes()) {
		streams.View[float64](grid.Bytes())[i] = float64(i)
	}
	err := errors.Join(s.CopyBox(
		streams.Pitched{Span: columns.All(), Pitch: 2 * 8},
		streams.Pitched{Span: grid.All(), Offset: 3 * 8, Pitch: 5 * 8},
		2*8, 3, 1), s.Sync(time.Minute))
	fmt.Println(streams.View[float64](columns.Bytes()), err)

	// If the distance of planes is not a multiple of the pitch, the caller must copy differently.
	err = s.CopyBox(
		streams.Pitched{Span: columns.All(), Pitch: 8, Plane: 2 * 8},
		streams.Pitched{Span: grid.All(), Pitch: 2 * 8, Plane: 5 * 8},
		8, 2, 2)
	fmt.Println(errors.Is(err, streams.ErrUnsuited))
	// Output:
	// [3 4 8 9 13 14] <nil>
	// true
}

// Only events order streams, here of two devices.
func ExampleStream_Wait() {
	devices := open(2)
	defer streams.CloseAll(devices)
	first, err1 := devices[0].NewStream(streams.Normal)
	second, err2 := devices[1].NewStream(streams.Urgent)
	done, err3 := devices[0].NewEvent()
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	say := func(d *streams.Device, what string) *streams.Kernel {
		k, err := d.NewKernel(streams.KernelSpec{Name: what, Run: func() { fmt.Println(what) }})
		if err != nil {
			log.Fatal(err)
		}
		return k
	}
	err := errors.Join(
		first.Launch(say(devices[0], "produce")), first.Record(done),
		second.Wait(done), second.Launch(say(devices[1], "consume")),
		second.Sync(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// produce
	// consume
}

// A kernel may only access memory of its own device and pinned memory.
func ExampleDevice_NewKernel() {
	devices := open(2)
	defer streams.CloseAll(devices)
	far, err := devices[1].Alloc(64)
	if err != nil {
		log.Fatal(err)
	}
	_, err = devices[0].NewKernel(streams.KernelSpec{Name: "reach", Uses: []streams.Span{far.All()}, Run: func() {}})
	fmt.Println(err)
	// Output: device host 0: prepare reach: must use its own or pinned memory, got host 1 [0, 64) of 64 bytes
}

// The workers of a group wait for each other, with a limit.
func ExampleWorkerGroup() {
	workers := streams.NewWorkerGroup(2, time.Minute)
	baked := streams.Counter{Name: "the baker"}
	workers.Go("baker", func() error {
		fmt.Println("bread")
		baked.Add()
		return nil
	})
	workers.Go("guest", func() error {
		if err := workers.Await(&baked, 1); err != nil {
			return err
		}
		fmt.Println("eaten")
		return nil
	})
	fmt.Println(workers.Wait())
	// Output:
	// bread
	// eaten
	// <nil>
}

// A tracer records the operations of a stream in steps 2 and 3 of five.
func ExampleTracer() {
	devices := open(1)
	defer streams.CloseAll(devices)
	d := devices[0]
	tracer, err := streams.NewTracer(devices, streams.Window{First: 2, Last: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer tracer.Close()

	s, err1 := d.NewStream(streams.Normal) // after the tracer
	s.SetName("compute")
	sweep, err2 := d.NewKernel(streams.KernelSpec{Name: "sweep", Work: streams.Sweep, Run: func() {}})
	from, err3 := d.Alloc(800)
	to, err4 := d.AllocPinned(800)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		log.Fatal(err)
	}
	for step := range int64(5) {
		s.BeginStep(step)
		s.Launch(sweep)
		s.Copy(to.All(), from.All())
	}
	s.Sync(time.Minute)

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
