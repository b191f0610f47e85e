package halo

import (
	"time"

	"github.com/halox/halox/p2p"
)

// ProcessModel is what messages between processes take, which are packed, sent by MPI and unpacked: measured between two
// processes of one host, and between two hosts. Others of the kind count as alike.
type ProcessModel struct {
	Nodes  []int // by rank of the process: the number of its host
	Within *ProcessCurve
	Across *ProcessCurve
}

// ProcessCurve is what messages between two processes take.
type ProcessCurve struct {
	From, To int // the processes, by rank
	Curve    p2p.Curve
}

// Time returns how long a message takes from one process to another, from its first call on the host to its arrival. ok is
// false where that was not measured.
func (m *ProcessModel) Time(from, to int, bytes int64) (took time.Duration, ok bool) {
	if m == nil {
		return 0, false
	}
	c := m.Within
	if m.Nodes[from] != m.Nodes[to] {
		c = m.Across
	}
	if c == nil {
		return 0, false
	}
	return c.Curve.Time(bytes), true
}
