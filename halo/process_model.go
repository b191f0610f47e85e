package halo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// MeasureProcesses measures messages between the processes that share grids: between the first two on one
// host, and between the first two on different hosts. All processes call it and get the same result; nil for
// a single process.
func (s *Session) MeasureProcesses(ctx context.Context) (*ProcessModel, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	p := s.asked.Processes
	switch {
	case p.IsAlone():
		return nil, nil
	case ctx == nil:
		return nil, p.Fail(errNoContext)
	}
	m := &ProcessModel{Nodes: p.Nodes}
	for _, kind := range []struct {
		curve **ProcessCurve
		alike bool
	}{{&m.SameHost, true}, {&m.OtherHosts, false}} {
		from, to, found := firstPair(p.Nodes, kind.alike)
		if !found {
			continue
		}
		c, err := s.measureProcesses(ctx, from, to)
		if err != nil {
			return nil, err
		}
		*kind.curve = c
	}
	return m, nil
}

// pairBudget is the approximate time for measuring messages between two processes.
const pairBudget = 300 * time.Millisecond

// measureProcesses measures messages of several sizes between two processes. When the budget is spent it
// skips all sizes after the first two.
func (s *Session) measureProcesses(ctx context.Context, from, to int) (*ProcessCurve, error) {
	var samples []p2p.Sample
	begin := time.Now()
	for _, rows := range rowsOf(s.Devices[0]) {
		sample, spent, err := s.sampleProcesses(ctx, from, to, rows, begin)
		if err != nil {
			return nil, fmt.Errorf("halo: measure messages between %s and %s: %w", s.asked.Processes.Name(from),
				s.asked.Processes.Name(to), err)
		}
		samples = append(samples, sample)
		if spent && len(samples) >= 2 {
			break
		}
	}
	return &ProcessCurve{from, to, p2p.NewCurve(samples...)}, nil
}

// sampleProcesses measures messages of a number of rows. All processes prepare them; two exchange them. spent
// reports whether the budget is spent, by the clock of the first of the two.
func (s *Session) sampleProcesses(ctx context.Context, from, to, rows int, begin time.Time) (sample p2p.Sample,
	spent bool, err error) {
	p := s.asked.Processes
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	plan, x, err := s.pairExchange(from, to, rows, &open)
	if err != nil {
		return sample, false, err
	}
	there, back := x.Transfer(0), x.Transfer(1)
	if plan.Messages[0].From == 1 {
		there, back = back, there
	}
	note := struct {
		Took  time.Duration
		Spent bool
	}{}
	if p.Rank == from || p.Rank == to {
		note.Took, err = s.pingPong(there, back, p.Rank == from)
		note.Spent = time.Since(begin) > pairBudget
	}
	if err := p.Agree(ctx, "measure messages", errors.Join(err, open.Close())); err != nil {
		return sample, false, err
	}
	note, err = mpi.Broadcast(ctx, p, "measure messages", note, from)
	return p2p.Sample{Bytes: plan.Messages[0].Bytes, Time: max(1, note.Took)}, note.Spent, err
}

// pairExchange prepares an exchange along y of two subdomains on two processes: a message of rows in each
// direction.
func (s *Session) pairExchange(from, to, rows int, open *streams.Resources) (*Plan, *Exchanger, error) {
	plan, err := s.pairPlan(from, to, rows)
	if err = s.asked.agree(context.Background(), "plan messages", err); err != nil {
		return nil, nil, err
	}
	field, err := NewField(plan.Placement, plan.Specs[0])
	if err == nil {
		open.Add(field)
	}
	if err = s.asked.agree(context.Background(), "allocate messages", err); err != nil {
		return nil, nil, err
	}
	x, err := NewExchanger(plan, s.Compiler, field)
	if err != nil {
		return nil, nil, err
	}
	open.Add(x)
	return plan, x, nil
}

// pairPlan plans the exchange of pairExchange.
func (s *Session) pairPlan(from, to, rows int) (*Plan, error) {
	devices := make([]*streams.Device, 2)
	switch s.asked.Processes.Rank {
	case from:
		devices[0] = s.Devices[0]
	case to:
		devices[1] = s.Devices[0]
	}
	width := domain.Radius{Minus: domain.Vec{0, 1, 0}, Plus: domain.Vec{0, 1, 0}}
	return rowsPlan(s.Links, p2p.Auto, rows, 1, width, func(cut *domain.Decomposition) (*Placement, error) {
		return PlaceShared(s.asked.Processes, cut, []int{from, to}, devices)
	})
}

// pingPong sends a message back and forth, starting at the first process, and returns half of the median
// time.
func (s *Session) pingPong(there, back *Transfer, first bool) (took time.Duration, err error) {
	at, err := s.Devices[0].NewStream(streams.Urgent)
	if err != nil {
		return 0, s.asked.Processes.Fail(err)
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	group := streams.NewWorkerGroup(manyWorkers, 2*s.asked.Processes.Limit())
	receive := func(t *Transfer) error { return cmp.Or(t.Receive(group, at), at.Sync(transferLimit)) }
	var times []time.Duration
	for range 1 + maxRepeats {
		begin := time.Now()
		if first {
			if err = there.Send(at); err == nil {
				err = receive(back)
			}
		} else if err = receive(there); err == nil {
			err = back.Send(at)
		}
		if err != nil {
			return 0, s.asked.Processes.Fail(err)
		}
		times = append(times, time.Since(begin)/2)
	}
	times = times[1:]
	slices.Sort(times)
	return times[len(times)/2], at.Sync(transferLimit)
}

// TryNetworks tries all networks between the processes that share grids with this one, and measures message
// times over those that are correct, or only Devices.Network if it names one. The results are saved in the
// user's cache, where Open finds them, and the fastest networks are used from now on. All processes call it
// and get the same results. A faulty network library may end the program here; then it is not used. CPU
// devices have only one network, which is not tried.
func (s *Session) TryNetworks(ctx context.Context) (trials []NetworkTrial, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	p := s.asked.Processes
	switch {
	case p.IsAlone() || s.Devices[0].HostMemory:
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
		if err := p.EndNCCL(); err != nil {
			return nil, err
		}
	}
	return trials, p.Use(best.within, best.across)
}

// tryNetwork tries one network, and measures it if it is correct.
func (s *Session) tryNetwork(ctx context.Context, n mpi.Network) (t NetworkTrial, err error) {
	p := s.asked.Processes
	t = NetworkTrial{Network: n, Library: p.Library}
	if err := s.networks().prove(ctx, n, n == s.asked.Network); err != nil {
		t.Why = words(err)
		return t, p.Err()
	}
	if err := s.networks().use(n); err != nil {
		return t, err
	}
	m, err := s.MeasureProcesses(ctx)
	if err != nil {
		return t, err
	}
	t.SameHost, t.OtherHosts = m.SameHost, m.OtherHosts
	if n == mpi.IPC {
		t.OtherHosts = nil
	}
	if n == mpi.NCCL {
		t.Library = p.NCCL()
	}
	return t, nil
}

// UsedNetwork describes what carries messages between processes of one host, or between hosts.
type UsedNetwork struct {
	Hosts   bool          // true for messages between hosts
	Network mpi.Network   // the network used
	Carrier string        // library with its version string; for NCCL also the connections that it uses so far
	Curve   *ProcessCurve // message times; nil if not measured
}

// UsedNetworks returns what carries messages to other processes; empty for a single process.
func (s *Session) UsedNetworks() (all []UsedNetwork) {
	p := s.asked.Processes
	if p.IsAlone() {
		return nil
	}
	within, across := p.Used()
	for _, n := range []UsedNetwork{{Network: within}, {Network: across, Hosts: true}} {
		if _, _, found := firstPair(p.Nodes, !n.Hosts); !found {
			continue
		}
		n.Carrier = p.Library
		switch {
		case n.Network == mpi.NCCL:
			n.Carrier = p.NCCL()
		case n.Network == mpi.IPC && s.Devices[0].HostMemory:
			n.Carrier = "shared memory"
		case n.Network == mpi.IPC:
			n.Carrier = "CUDA IPC"
		}
		for _, t := range s.trials {
			if t.Network == n.Network && n.Hosts {
				n.Curve = t.OtherHosts
			} else if t.Network == n.Network {
				n.Curve = t.SameHost
			}
		}
		all = append(all, n)
	}
	return all
}
