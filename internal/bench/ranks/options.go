// Package ranks times ranks of devices: messages and notifications of two of them, of all of them at once, barriers,
// and how much of an exchange is hidden by ranks that compute meanwhile.
package ranks

import (
	"cmp"
	"fmt"
	"time"

	"github.com/halox/halox/internal/bench/option"
)

// Options say what is measured.
type Options struct {
	What              []string // see Whats
	Bytes             []int64  // of messages to and fro
	Messages          []int64  // bytes of messages of all ranks at once
	Vectors           []int64  // bytes of vectors of collectives, multiples of 8
	Compute           []string // for overlap, see Computes
	Apart             []int    // for overlap: whether ranks of one multiprocessor begin apart: 0, 1 or both
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
	collective = "collectives"
	channels   = "channels"
	proxies    = "proxy"
	compare    = "compare"
)

// Whats returns what can be measured.
func Whats() []string {
	return []string{latencies, bandwidths, barrier, overlaps, collective, channels, proxies, compare}
}

// What a rank of overlap can compute.
const (
	newton = "newton"
	copies = "copy"
)

// Computes returns what a rank of overlap can compute.
func Computes() []string { return []string{newton, copies} }

// Check rejects invalid options.
func (o *Options) Check() error {
	o.What, o.Compute, o.Apart = option.Distinct(o.What), option.Distinct(o.Compute), option.Distinct(o.Apart)
	for _, bytes := range o.Vectors {
		if bytes%8 != 0 {
			return fmt.Errorf("--vectors %d: want a multiple of 8 bytes", bytes)
		}
	}
	for _, apart := range o.Apart {
		if apart != 0 && apart != 1 {
			return fmt.Errorf("--apart %d: want 0 or 1", apart)
		}
	}
	return cmp.Or(
		option.EachOf("what", o.What, Whats()...),
		option.EachOf("compute", o.Compute, Computes()...),
		option.Numbers("per-multiprocessor", o.PerMultiprocessor, 32),
		threads(o.Threads),
		option.Time("budget", o.Budget),
	)
}

// threads rejects a number that a rank cannot have.
func threads(n int) error {
	if n < 32 || n > 1024 || n%32 != 0 {
		return fmt.Errorf("--threads %d: want a multiple of 32 up to 1024", n)
	}
	return nil
}
