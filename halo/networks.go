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

// prove returns an error, on all processes, unless a network can be had and carries data right.
func (s networks) prove(ctx context.Context, n mpi.Network, insist bool) error {
	switch n {
	case mpi.Device:
		return s.TryDevice(ctx, s.devices[0], insist)
	case mpi.NCCL:
		return s.TryNCCL(ctx, s.devices[0])
	}
	return nil
}

// choose has messages take the network that is wanted, or the fastest that is known. It returns what is known. All
// processes call it.
func (s networks) choose(ctx context.Context, want mpi.Network) (trials []NetworkTrial, err error) {
	want = cmp.Or(want, mpi.Auto)
	if trials, err = s.recall(ctx); err != nil {
		return nil, err
	}
	if want == mpi.Auto {
		return trials, s.take(ctx, fastest(trials))
	}
	known := slices.ContainsFunc(trials, func(t NetworkTrial) bool { return t.Network == want && t.Why == "" })
	if !known || want != mpi.Device { // which another process tries for long
		if err := s.prove(ctx, want, true); err != nil {
			return nil, optionError("Devices.Network", "%s: %w", want, err)
		}
	}
	return trials, s.Use(want, want)
}

// take has messages take networks that were right before. Where NCCL is among them and does not start, none of its
// messages do.
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

// follow has messages take the networks of a larger group of processes.
func (s networks) follow(ctx context.Context, others *mpi.Processes) error {
	within, across := others.Used()
	return s.take(ctx, usedNetworks{within, across})
}

// NetworkTrial is what came of trying a network between the processes.
type NetworkTrial struct {
	Network mpi.Network `json:"network"`
	Library string      `json:"library"`       // that carries messages, in its own words
	Why     string      `json:"why,omitempty"` // why it cannot be used; "" if it can
	// What messages take between processes of one host, and of two; nil where there are none.
	Within, Across *ProcessCurve `json:",omitempty"`
}

// usedNetworks are those within a host and between hosts.
type usedNetworks struct{ within, across mpi.Network }

// fastest returns the networks over which messages take the least time, Pieces where nothing is known.
func fastest(trials []NetworkTrial) usedNetworks {
	best := usedNetworks{mpi.Pieces, mpi.Pieces}
	for _, kind := range []struct {
		to    *mpi.Network
		curve func(NetworkTrial) *ProcessCurve
	}{
		{&best.within, func(t NetworkTrial) *ProcessCurve { return t.Within }},
		{&best.across, func(t NetworkTrial) *ProcessCurve { return t.Across }},
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

// The sizes at which networks are compared, in powers of 4: those of faces that a step sends.
const (
	leastCompared = 4 << 10
	mostCompared  = 4 << 20
)

// mean returns the geometric mean of the seconds that messages take.
func (c *ProcessCurve) mean() float64 {
	sum, n := 0.0, 0
	for bytes := int64(leastCompared); bytes <= mostCompared; bytes *= 4 {
		sum, n = sum+math.Log(c.Curve.Time(bytes).Seconds()), n+1
	}
	return math.Exp(sum / float64(n))
}

// words returns an error on one line.
func words(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// networksVersion changes when what is tried, or how, does.
const networksVersion = 2

// networksKey is what trials depend on.
type networksKey struct {
	Version int
	Library string   // MPI's library: its path and the version it reports
	Driver  string   // of the GPUs
	Devices []string // names of the GPUs of rank 0
	Nodes   []int    // by process: the number of its host
}

// networks are those between the devices of processes.
type networks struct {
	*mpi.Processes
	devices []*streams.Device // of this process
	driver  string            // version of the GPUs' driver
}

// store returns where rank 0 keeps trials.
func (s networks) store() cache.Store[[]NetworkTrial] {
	k := networksKey{networksVersion, s.LibraryFile() + " " + s.Library, s.driver, nil, s.Nodes}
	for _, d := range s.devices {
		k.Devices = append(k.Devices, d.Name)
	}
	return cache.Remember(cache.At(""), "networks", k, validTrials)
}

// keep keeps trials, on rank 0. Where that fails, networks are tried again.
func (s networks) keep(trials []NetworkTrial) {
	if s.Rank == 0 {
		_ = s.store().Put(trials)
	}
}

// recall returns the trials that rank 0 has kept, on all processes, nil where there are none. All call it.
func (s networks) recall(ctx context.Context) (trials []NetworkTrial, err error) {
	if s.Rank == 0 {
		trials, _ = s.store().Get()
	}
	return mpi.Broadcast(ctx, s.Processes, "what is known of networks", trials, 0)
}

func validTrials(trials []NetworkTrial) bool {
	return !slices.ContainsFunc(trials, func(t NetworkTrial) bool {
		return t.Within != nil && len(t.Within.Curve) == 0 || t.Across != nil && len(t.Across.Curve) == 0
	})
}

// ProcessModel is what messages between processes take, which are packed, sent by MPI and unpacked: measured between
// two processes of one host, and between two hosts. Others of the kind count as alike.
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

// Time returns how long a message takes from one process to another, from its first call on the host to its arrival. ok
// is false where that was not measured.
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
