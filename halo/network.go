package halo

import (
	"context"

	"github.com/halox/halox/p2p/mpi"
)

// TryNetworks tries all networks between the processes that share grids with this one, and measures what messages take over
// those that are right. What it finds is kept in the user's cache, where Open finds it, and the fastest are taken from now on.
// Where Devices.Network names one, that alone is measured. All processes call it, and get the same. What a network of a library does wrong may end the
// program here: where it does, none takes it. Host devices have one network, which is not tried.
func (s *Session) TryNetworks(ctx context.Context) (trials []NetworkTrial, err error) {
	if err := s.Usable(); err != nil {
		return nil, err
	}
	p := s.asked.Processes
	switch {
	case p == nil || s.Devices[0].HostMemory:
		return nil, nil
	case ctx == nil:
		return nil, p.Fail(errNoContext)
	}
	if s.asked.Network != mpi.Auto && s.asked.Network != "" {
		trial, err := s.tryNetwork(ctx, s.asked.Network)
		s.trials = []NetworkTrial{trial}
		return s.trials, err
	}
	for _, n := range mpi.Networks() {
		trial, err := s.tryNetwork(ctx, n)
		if err != nil {
			return nil, err
		}
		trials = append(trials, trial)
	}
	s.trials = trials
	s.networks().keep(trials)
	best := fastest(trials)
	if best.within != mpi.NCCL && best.across != mpi.NCCL {
		if err := p.Disconnect(); err != nil {
			return nil, err
		}
	}
	return trials, p.Use(best.within, best.across)
}

// tryNetwork tries one network, and measures it where it is right.
func (s *Session) tryNetwork(ctx context.Context, n mpi.Network) (t NetworkTrial, err error) {
	p := s.asked.Processes
	t = NetworkTrial{Network: n, Library: p.Library}
	if err := s.networks().prove(ctx, n, n == s.asked.Network); err != nil {
		t.Why = words(err)
		return t, p.Err()
	}
	if err := p.Use(n, n); err != nil {
		return t, err
	}
	m, err := s.MeasureProcesses(ctx)
	if err != nil {
		return t, err
	}
	t.Within, t.Across = m.Within, m.Across
	if n == mpi.NCCL {
		t.Library = p.NCCL()
	}
	return t, nil
}

// UsedNetwork is what carries messages between processes of one host, or between hosts.
type UsedNetwork struct {
	Hosts   bool // between hosts
	Network mpi.Network
	Carrier string        // the library, in its own words, and of NCCL over what it has connected devices until now
	Curve   *ProcessCurve // what messages take; nil where no trial has measured that
}

// UsedNetworks returns what carries messages to other processes; none where this one is alone.
func (s *Session) UsedNetworks() (all []UsedNetwork) {
	p := s.asked.Processes
	if p == nil {
		return nil
	}
	within, across := p.Used()
	for _, n := range []UsedNetwork{{Network: within}, {Network: across, Hosts: true}} {
		if _, _, found := firstPair(p.Nodes, !n.Hosts); !found {
			continue
		}
		n.Carrier = p.Library
		if n.Network == mpi.NCCL {
			n.Carrier = p.NCCL()
		}
		for _, t := range s.trials {
			if t.Network == n.Network && n.Hosts {
				n.Curve = t.Across
			} else if t.Network == n.Network {
				n.Curve = t.Within
			}
		}
		all = append(all, n)
	}
	return all
}
