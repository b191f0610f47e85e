package packing

import (
	"fmt"
	"strings"
	"time"

	"github.com/halox/halox/p2p"
)

// timed is what an engine took, or will.
type timed struct {
	Engine Engine        `json:"engine"`
	Time   time.Duration `json:"ns"`
}

func listTimes(times []timed) string {
	var all []string
	for _, m := range times {
		all = append(all, fmt.Sprintf("%s %s", m.Engine, p2p.Microseconds(m.Time)))
	}
	return strings.Join(all, ", ")
}
