package links

import (
	"cmp"
	"time"

	"github.com/halox/halox/internal/bench/option"
)

// LatencyOptions say which latencies are measured.
type LatencyOptions struct {
	Paths  []string      // of messages
	Budget time.Duration // for each measurement, about
}

// Check refuses options that make no sense.
func (o *LatencyOptions) Check() error {
	o.Paths = option.Distinct(o.Paths)
	return cmp.Or(
		option.EachOf("paths", o.Paths, Paths()...),
		option.Time("budget", o.Budget),
	)
}
