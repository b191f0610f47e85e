package flags

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// gateArgs is struct Gate of latency.cu.
type gateArgs struct {
	open   uint64
	count  uint64
	limit  int64
	failed uint64
}

// pingPongArgs is struct FlagPingPong of latency.cu.
type pingPongArgs struct {
	mine, its    uint64
	base         uint64
	rounds, warm int64
	serves       int64
	limit        int64
	took         uint64
}

// latencyProgram has the smallest kernels.
func latencyProgram() kernels.Program {
	return kernels.Program{File: "latency.cu", Mirrors: []kernels.Mirror{{Name: "FlagPingPong", Value: pingPongArgs{}}, {Name: "Gate", Value: gateArgs{}}}}
}

// NewNothing makes a launch ready of a kernel that does nothing.
func NewNothing(c *kernels.Compiler, d *streams.Device) (*streams.Kernel, error) {
	found, err := c.Load(d, latencyProgram(), "nothing")
	if err != nil {
		return nil, err
	}
	return launch.New(d, streams.KernelSpec{
		Name: "nothing", Run: func() {},
		Function: found[0], Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Argument: make([]byte, 8),
	})
}
