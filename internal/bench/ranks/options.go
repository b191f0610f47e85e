// Package ranks times ranks of devices: messages and notifications of two of them, of all of them at once, barriers,
// and how much of an exchange is hidden by ranks that compute meanwhile.
package ranks

import (
	"cmp"
	"time"

	"github.com/halox/halox/internal/bench/option"
)

// Options say what is measured.
type Options struct {
	What              []string // see Whats
	Bytes             []int64  // of messages to and fro
	Messages          []int64  // bytes of messages of all ranks at once
	PerMultiprocessor []int    // ranks
	Threads           int      // of a rank
	Budget            time.Duration
}

// What can be measured.
const (
	latencies  = "latency"
	bandwidths = "bandwidth"
	barrier    = "barrier"
	overlaps   = "overlap"
)

// Whats returns what can be measured.
func Whats() []string { return []string{latencies, bandwidths, barrier, overlaps} }

// Check refuses options that make no sense.
func (o *Options) Check() error {
	o.What = option.Distinct(o.What)
	return cmp.Or(
		option.EachOf("what", o.What, Whats()...),
		option.Numbers("per-multiprocessor", o.PerMultiprocessor, 32),
		option.Numbers("threads", []int{o.Threads / 32}, 32),
		option.Time("budget", o.Budget),
	)
}
