package mpi

import "slices"

// Network is an engine that carries messages between devices of different processes.
type Network string

// The networks. Auto stands for the fastest that was found right, see halo.Session.TryNetworks.
const (
	Auto   Network = "auto"
	Pieces Network = "mpi"        // through pinned memory, in pieces, by MPI
	Device Network = "mpi-device" // by MPI, which is given device memory
	NCCL   Network = "nccl"       // by NCCL, which MPI tells the order of messages
)

// Networks returns all networks but Auto, in the order in which they are shown. Of networks that take equally long the first
// is taken.
func Networks() []Network { return slices.Clone(networks) }

// networks are those but Auto. A new one has its line here, and its carriers in a file of its own, see newCarrier.
var networks = []Network{Pieces, Device, NCCL}
