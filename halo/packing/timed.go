package packing

import (
	"fmt"
	"strings"
	"time"

	"github.com/halox/halox/p2p"
)

// Timed is what an engine took, or will.
type Timed struct {
	Engine Engine        `json:"engine"`
	Time   time.Duration `json:"ns"`
}

func listTimes(times []Timed) string {
	var all []string
	for _, m := range times {
		all = append(all, fmt.Sprintf("%s %s", m.Engine, p2p.Microseconds(m.Time)))
	}
	return strings.Join(all, ", ")
}
