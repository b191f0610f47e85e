package bench

import (
	"context"
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Machine is the open devices that a benchmark measures, and what else is known of them.
type Machine struct {
	Devices  []*streams.Device
	Topology p2p.Topology // how GPUs are linked; nil where that is not known
	Driver   string       // version of the GPUs' driver; "" where that is not known
	Program  string       // what built the program
	Compiler *kernels.Compiler
}

// Links proves the links between the first n devices with data.
func (m *Machine) Links(ctx context.Context, n int) (*p2p.Links, error) {
	if n > len(m.Devices) {
		return nil, fmt.Errorf("bench: %d devices are wanted, %d are open", n, len(m.Devices))
	}
	return p2p.Discover(ctx, m.Devices[:n:n], m.Topology)
}
