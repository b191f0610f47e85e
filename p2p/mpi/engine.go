package mpi

import (
	"errors"
	"fmt"
	"slices"
)

// Use has messages that are made from now on carried by one network between processes of one host, and by one between hosts.
// Without it both are Pieces. All processes must call it, with the same.
func (p *Processes) Use(within, across Network) error {
	for _, n := range []Network{within, across} {
		if !slices.Contains(networks, n) {
			return fmt.Errorf("mpi: there is no network %q", n)
		}
		if n == NCCL && p.pairs == nil {
			return errors.New("mpi: network nccl is not open, see TryNCCL")
		}
	}
	p.within, p.across = within, across
	return nil
}

// Used returns the networks of messages to processes of the same host, and of others.
func (p *Processes) Used() (within, across Network) { return p.within, p.across }

// networkTo returns the network of messages between this process and another.
func (p *Processes) networkTo(other int) Network {
	if p.Nodes[p.Rank] == p.Nodes[other] {
		return p.within
	}
	return p.across
}

// newCarrier makes what carries a message, at the end that sends or at the other one.
func (m *message) newCarrier(sends bool) (carrier, error) {
	network := m.processes.networkTo(m.other)
	if network != Pieces && m.span.Memory.Device().HostMemory {
		return nil, fmt.Errorf("mpi: network %s: %w", network, errNoDeviceMemory)
	}
	switch network {
	case Device:
		return &whole{message: m, sends: sends}, nil
	case NCCL:
		return newLinked(m, m.processes.pairs, sends)
	}
	p, err := newPieces(m)
	switch {
	case err != nil:
		return nil, err
	case sends:
		return &outPieces{pieces: p}, nil
	}
	return &inPieces{pieces: p}, nil
}

// start makes the carrier and runs it.
func (m *message) start(sends bool) error {
	if sends {
		m.stream.SetName("copies for rank %d", m.other)
		m.lane = m.span.Memory.Device().NewLane("to rank %d", m.other)
	} else {
		m.stream.SetName("copies from rank %d", m.other)
	}
	c, err := m.newCarrier(sends)
	if err != nil {
		return errors.Join(err, m.resources.Close())
	}
	m.run(c)
	return nil
}
