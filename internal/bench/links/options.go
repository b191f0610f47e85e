package links

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/halox/halox/internal/bench/option"
)

// The modes: who sends while a link is measured.
const (
	oneWayMode   = "one-way"
	bothWaysMode = "both-ways"
	ringMode     = "ring"
	ringBothMode = "ring-both-ways"
)

// Modes returns who may send while a link is measured.
func Modes() []string { return []string{oneWayMode, bothWaysMode, ringMode, ringBothMode} }

// maxMessages is how many are queued at most, before a sender's streams bound that.
const maxMessages = 2000

// Options say which messages are measured.
type Options struct {
	Sizes        []int64 // of messages, in bytes
	Paths, Modes []string
	Budget       time.Duration // for each measurement, about
}

// Check rejects impossible options. The sizes are each measured once, in order.
func (o *Options) Check() error {
	o.Sizes = slices.Compact(slices.Sorted(slices.Values(o.Sizes)))
	if len(o.Sizes) == 0 || o.Sizes[0] < 1 {
		return errors.New("--sizes: give sizes above 0")
	}
	o.Paths, o.Modes = option.Distinct(o.Paths), option.Distinct(o.Modes)
	return cmp.Or(
		option.EachOf("paths", o.Paths, Paths()...),
		option.EachOf("modes", o.Modes, Modes()...),
		option.Time("budget", o.Budget),
	)
}

// LatencyOptions say which latencies are measured.
type LatencyOptions struct {
	Paths  []string      // of messages
	Budget time.Duration // for each measurement, about
}

// Check rejects impossible options.
func (o *LatencyOptions) Check() error {
	o.Paths = option.Distinct(o.Paths)
	return cmp.Or(
		option.EachOf("paths", o.Paths, Paths()...),
		option.Time("budget", o.Budget),
	)
}
