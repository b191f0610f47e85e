package halo

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// prove returns an error, on all processes, unless a network is available and carries data correctly.
func (s networks) prove(ctx context.Context, n mpi.Network, insist bool) error {
	switch n {
	case mpi.Device:
		return s.TryDevice(ctx, s.devices[0], insist)
	case mpi.NCCL:
		return s.TryNCCL(ctx, s.devices[0])
	case mpi.IPC:
		return s.TryIPC(ctx, s.devices)
	}
	return nil
}

// firstPair returns the first two processes on one host (alike), or on different hosts.
func firstPair(nodes []int, alike bool) (from, to int, found bool) {
	for from, a := range nodes {
		for to, b := range nodes[:from] {
			if (a == b) == alike {
				return to, from, true
			}
		}
	}
	return 0, 0, false
}

// use makes messages use a network, or if that is mpi.IPC, those within a host.
func (s networks) use(n mpi.Network) error {
	if n == mpi.IPC {
		return s.Use(n, mpi.Pieces)
	}
	return s.Use(n, n)
}

// choose makes messages use the requested network, or the fastest known one. It returns the known trials. All
// processes call it.
func (s networks) choose(ctx context.Context, want mpi.Network) (trials []NetworkTrial, err error) {
	want = cmp.Or(want, mpi.Auto)
	if trials, err = s.recall(ctx); err != nil {
		return nil, err
	}
	if want == mpi.Auto {
		return s.automatic(ctx, trials)
	}
	known := slices.ContainsFunc(trials, func(t NetworkTrial) bool { return t.Network == want && t.Why == "" })
	if !known || want != mpi.Device { // whose trial by another process takes long
		if err := s.prove(ctx, want, true); err != nil {
			return nil, optionError("Devices.Network", "%s: %w", want, err)
		}
	}
	return trials, s.use(want)
}

// automatic makes messages use the fastest known networks, or mpi.IPC within a host if none was measured there. It
// returns the trials, with the reason if mpi.IPC does not work.
func (s networks) automatic(ctx context.Context, trials []NetworkTrial) ([]NetworkTrial, error) {
	best := fastest(trials)
	_, _, shares := firstPair(s.Nodes, true)
	if !shares || len(trials) > 0 && best.within != mpi.IPC {
		return trials, s.take(ctx, best)
	}
	if err := s.TryIPC(ctx, s.devices); err != nil {
		if s.Err() != nil {
			return nil, err
		}
		others := slices.DeleteFunc(trials, func(t NetworkTrial) bool { return t.Network == mpi.IPC })
		best = fastest(others)
		return append(others, NetworkTrial{Network: mpi.IPC, Library: s.Library, Why: words(err)}), s.take(ctx, best)
	}
	best.within = mpi.IPC
	return trials, s.take(ctx, best)
}

// take makes messages use networks that worked in trials. If NCCL is one of them and does not start, no
// messages use it.
func (s networks) take(ctx context.Context, n usedNetworks) error {
	for _, one := range []*mpi.Network{&n.within, &n.across} {
		if *one != mpi.NCCL {
			continue
		}
		if err := s.TryNCCL(ctx, s.devices[0]); err != nil {
			if s.Err() != nil {
				return err
			}
			*one = mpi.Pieces
		}
	}
	return s.Use(n.within, n.across)
}

// follow makes messages use the networks of a larger group of processes.
func (s networks) follow(ctx context.Context, others *mpi.Processes) error {
	within, across := others.Used()
	return s.take(ctx, usedNetworks{within, across})
}

// NetworkTrial is the result of trying a network between the processes.
type NetworkTrial struct {
	Network mpi.Network `json:"network"`       // the network tried
	Library string      `json:"library"`       // library that carries messages, with its version string
	Why     string      `json:"why,omitempty"` // why it cannot be used; "" if it works
	// Message times between processes of one host and of two hosts; nil if there are no
	// such processes.
	SameHost, OtherHosts *ProcessCurve `json:",omitempty"`
}

// usedNetworks are the networks within a host and between hosts.
type usedNetworks struct{ within, across mpi.Network }

// fastest returns the networks with the lowest message times, Pieces if nothing is known.
func fastest(trials []NetworkTrial) usedNetworks {
	best := usedNetworks{mpi.Pieces, mpi.Pieces}
	for _, kind := range []struct {
		to    *mpi.Network
		curve func(NetworkTrial) *ProcessCurve
	}{
		{&best.within, func(t NetworkTrial) *ProcessCurve { return t.SameHost }},
		{&best.across, func(t NetworkTrial) *ProcessCurve { return t.OtherHosts }},
	} {
		least := math.Inf(1)
		for _, t := range trials {
			if c := kind.curve(t); t.Why == "" && c != nil && c.mean() < least {
				least, *kind.to = c.mean(), t.Network
			}
		}
	}
	return best
}

// The sizes at which networks are compared, in powers of 4: the sizes of typical faces.
const (
	leastCompared = 4 << 10
	mostCompared  = 4 << 20
)

// mean returns the geometric mean of the message times in seconds.
func (c *ProcessCurve) mean() float64 {
	sum, n := 0.0, 0
	for bytes := int64(leastCompared); bytes <= mostCompared; bytes *= 4 {
		sum, n = sum+math.Log(c.Curve.Time(bytes).Seconds()), n+1
	}
	return math.Exp(sum / float64(n))
}

// words returns the error on one line.
func words(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// networksVersion changes when the trials change.
const networksVersion = 3

// networksKey is everything that trials depend on.
type networksKey struct {
	Version int
	Library string   // MPI library: path and reported version
	Driver  string   // of the GPUs
	Devices []string // names of the GPUs of rank 0
	Nodes   []int    // by process: host number
}

// networks are the networks between the devices of processes.
type networks struct {
	*mpi.Processes
	devices []*streams.Device // of this process
	driver  string            // version of the GPUs' driver
}

// store returns the store of rank 0 for trials.
func (s networks) store() cache.Store[[]NetworkTrial] {
	k := networksKey{networksVersion, s.LibraryFile() + " " + s.Library, s.driver, nil, s.Nodes}
	for _, d := range s.devices {
		k.Devices = append(k.Devices, d.Name)
	}
	return cache.Remember(cache.At(""), "networks", k, validTrials)
}

// keep saves trials, on rank 0. If that fails, the next session repeats the trials.
func (s networks) keep(trials []NetworkTrial) {
	if s.Rank == 0 {
		_ = s.store().Put(trials)
	}
}

// recall returns the trials saved by rank 0 to all processes, nil if there are none. All processes call it.
func (s networks) recall(ctx context.Context) (trials []NetworkTrial, err error) {
	if s.Rank == 0 {
		trials, _ = s.store().Get()
	}
	return mpi.Broadcast(ctx, s.Processes, "what is known of networks", trials, 0)
}

func validTrials(trials []NetworkTrial) bool {
	return !slices.ContainsFunc(trials, func(t NetworkTrial) bool {
		return t.SameHost != nil && len(t.SameHost.Curve) == 0 || t.OtherHosts != nil && len(t.OtherHosts.Curve) == 0
	})
}

// ProcessModel has the times of messages between processes, which are packed, sent by MPI and unpacked:
// measured between two processes of one host, and between two hosts. Other pairs of the same kind are assumed
// to be alike.
type ProcessModel struct {
	Nodes      []int         // by rank of the process: host number
	SameHost   *ProcessCurve // between processes of one host; nil if not measured
	OtherHosts *ProcessCurve // between hosts; nil if not measured
}

// ProcessCurve has the times of messages between two processes.
type ProcessCurve struct {
	From, To int       // the processes, by rank
	Curve    p2p.Curve // message time by size
}

// Time returns the time of a message from one process to another, from its first call on the host to its
// arrival. ok is false if it was not measured.
func (m *ProcessModel) Time(from, to int, bytes int64) (took time.Duration, ok bool) {
	if m == nil {
		return 0, false
	}
	c := m.SameHost
	if m.Nodes[from] != m.Nodes[to] {
		c = m.OtherHosts
	}
	if c == nil {
		return 0, false
	}
	return c.Curve.Time(bytes), true
}
