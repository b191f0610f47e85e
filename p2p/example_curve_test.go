package p2p_test

import (
	"fmt"
	"time"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Between the sizes that were measured, time grows along a straight line.
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
