package packing_test

import (
	"fmt"
	"log"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Example packs a column of a matrix on the device.
func Example() {
	const rows, columns = 4, 5
	platform := streams.HostPlatform(1) // or streams.CUDAPlatform("")
	devices, err := platform.Open(0)
	if err != nil {
		log.Fatal(err)
	}
	defer streams.CloseAll(devices)
	d := devices[0]

	column, err := datatype.Vector(rows, 1, columns, datatype.Float64)
	if err != nil {
		log.Fatal(err)
	}
	message, err := packing.NewMessageLayout(column, 1)
	if err != nil {
		log.Fatal(err)
	}
	packer, err := packing.New(kernels.NewCompiler(kernels.Options{}), d, packing.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer packer.Close()

	matrix, _ := d.AllocPinned(rows * columns * 8) // device memory works too; pinned memory can be printed
	packed, _ := d.AllocPinned(message.Layout.Size())
	stream, _ := d.NewStream(streams.Normal)
	for i := range rows * columns {
		streams.View[float64](matrix.Bytes())[i] = float64(i)
	}
	job, err := packer.Pack(packing.Targeted, packed.All(), packing.Place{Data: matrix.All(), Origin: 2 * 8}, message)
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	if err := job.Queue(stream); err != nil {
		log.Fatal(err)
	}
	if err := stream.Sync(time.Minute); err != nil {
		log.Fatal(err)
	}
	fmt.Println(message.Layout)
	fmt.Println(streams.View[float64](packed.Bytes()))
	// Output:
	// 8 B at 0, 4 times +40
	// [2 7 12 17]
}
