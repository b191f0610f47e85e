// Package plan shows the messages, the memory and the time of the exchanges of a run, before any field is allocated.
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Plan is the description of a setup. If processes share the grid it has the information of all.
type Plan struct {
	*solvers.Setup
	solver   string              // name of the problem for Print, such as "heat"
	series   []string            // fields that series copy
	parts    []part              // by process
	between  *halo.ProcessModel  // of messages between processes
	networks []halo.NetworkTrial // networks that were tried
}

// part is the information of one process.
type part struct {
	Devices []device // by rank of the subdomain; zero if another process owns it
	Links   []link   // by message; as known to this process
	Memory  []memory // nil if unknown
	Host    streams.HostInfo
	Times   []*times
	Unfit   string // reason why a run does not fit
}

// device is a device with its names.
type device struct{ Name, Model string }

// link is the path of a message.
type link struct {
	Kind, Why string
	Path      p2p.Path
}

// memory is the memory that a run allocates on a device, and the memory of the device, in bytes.
type memory struct {
	Device string `json:"device"`
	Field  int64  `json:"field_bytes"`
	Beside int64  `json:"extra_bytes"`
	Copy   int64  `json:"copy_bytes"` // of the state for a checkpoint, and of fields for series
	Pinned int64  `json:"pinned_bytes"`
	Own    int64  `json:"-"` // of the host's memory
	Free   int64  `json:"free_bytes"`
	Total  int64  `json:"total_bytes"`
}

// times is the times of the messages of an exchange on one device.
type times struct {
	Device   string        `json:"device"`
	Sends    time.Duration `json:"sends_ns"` // one after the other
	Receives time.Duration `json:"receives_ns"`
	Longest  time.Duration `json:"longest_ns"` // a single message
	Abroad   time.Duration `json:"-"`          // sends to other hosts, one after the other
	Unknown  int           `json:"unknown"`    // messages without a measured time
}

func (t *times) add(took time.Duration, known bool, sum *time.Duration) {
	*sum += took
	t.Longest = max(t.Longest, took)
	if !known {
		t.Unknown++
	}
}

// The kinds of links between subdomains of different processes.
const (
	ofHosts     = "network"
	ofProcesses = "processes"
)

// New returns the plan of a setup with the information of all processes. All call it. solver is the name of the
// problem, and series has the fields that series copy. If graph is set, the plan has no memory and no times, and only
// WriteDot can print it.
func New(ctx context.Context, setup *solvers.Setup, solver string, series []string, graph bool) (*Plan, error) {
	p := &Plan{Setup: setup, solver: solver, series: series}
	var err error
	if !graph {
		if p.networks, err = p.Session.TryNetworks(ctx); err != nil {
			return nil, err
		}
		if p.between, err = p.Session.MeasureProcesses(ctx); err != nil {
			return nil, err
		}
	}
	mine, err := p.mine(ctx, graph)
	if err := p.Place.Agree(ctx, "plan", err); err != nil {
		return nil, err
	}
	if p.parts, err = mpi.Gather(context.Background(), p.Place.Processes, "plan", mine); err != nil {
		return nil, err
	}
	for i := range p.Plan.Messages { // also those within other processes
		p.Plan.Messages[i].Path, p.Plan.Messages[i].Why = p.link(i).Path, p.link(i).Why
	}
	return p, nil
}

// device returns the device of a subdomain.
func (p *Plan) device(rank int) device { return p.parts[p.Place.Owners[rank]].Devices[rank] }

// link returns the path of a message, as known to its sender.
func (p *Plan) link(message int) link {
	return p.parts[p.Place.Owners[p.Plan.Messages[message].From]].Links[message]
}

// unfit returns an error if some device has too little memory for a run.
func (p *Plan) unfit() error {
	i := slices.IndexFunc(p.parts, func(k part) bool { return k.Unfit != "" })
	switch {
	case i < 0:
		return nil
	case p.Place.Processes.IsAlone():
		return errors.New(p.parts[i].Unfit)
	}
	return fmt.Errorf("%s: %s", p.Place.Processes.Name(i), p.parts[i].Unfit)
}

// mine returns the information of this process.
func (p *Plan) mine(ctx context.Context, graph bool) (k part, err error) {
	for _, d := range p.Place.Devices {
		var named device
		if d != nil {
			named = device{p.nameOf(d), d.Name}
		}
		k.Devices = append(k.Devices, named)
	}
	for _, m := range p.Plan.Messages {
		k.Links = append(k.Links, link{p.kindOf(m), m.Why, m.Path})
	}
	if graph {
		return k, nil
	}
	all, err := p.Memory(ctx)
	if err == nil {
		err = scheme.Fit(all)
	}
	if err != nil {
		k.Unfit = err.Error()
	}
	for _, m := range all {
		v := memory{Device: p.nameOf(m.Device), Field: m.Variables, Beside: m.Extra, Pinned: m.Pinned,
			Own: m.Pinned}
		for name, bytes := range m.State {
			if v.Copy += bytes; slices.Contains(p.series, name) {
				v.Copy += bytes
			}
		}
		if m.Device.HostMemory {
			v.Own += m.Variables + m.Extra
		}
		if v.Free, v.Total, err = m.Device.MemoryInfo(); err != nil {
			return k, err
		}
		if k.Host, err = m.Device.HostMemoryInfo(); err != nil {
			return k, err
		}
		k.Memory = append(k.Memory, v)
	}
	k.Times = p.times()
	return k, nil
}

// nameOf names a device of this process.
func (p *Plan) nameOf(d *streams.Device) string {
	if all := p.Place.Processes; !all.IsAlone() {
		return fmt.Sprintf("%v of rank %d", d, all.Rank)
	}
	return d.String()
}

// kindOf returns the kind of the link between the two subdomains of a message, as far as this process knows it.
func (p *Plan) kindOf(m halo.Message) string {
	if from, to := p.Place.Owners[m.From], p.Place.Owners[m.To]; from != to {
		if nodes := p.Place.Processes.Nodes; nodes[from] != nodes[to] {
			return ofHosts
		}
		return ofProcesses
	}
	switch link := p.Session.Links.Between(p.Place.Devices[m.From], p.Place.Devices[m.To]); {
	case link == nil:
		return "itself"
	case link.Kind == "":
		return "-"
	default:
		return link.Kind
	}
}

// times returns the times of the messages of an exchange for each device of this process, from the link model or,
// between processes, from that of the network.
func (p *Plan) times() (all []*times) {
	found := map[*streams.Device]*times{}
	for _, d := range p.Place.Devices {
		if d != nil && found[d] == nil {
			found[d] = &times{Device: p.nameOf(d)}
			all = append(all, found[d])
		}
	}
	for _, m := range p.Plan.Messages {
		from, to := p.Place.Devices[m.From], p.Place.Devices[m.To]
		var took time.Duration
		var known bool
		if from != nil && to != nil {
			took, known = p.Session.Links.Model.Time(from, to, m.Path,
				p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous})
		} else if from != nil || to != nil {
			took, known = p.between.Time(p.Place.Owners[m.From], p.Place.Owners[m.To], m.Bytes)
		}
		if t := found[from]; t != nil {
			t.add(took, known, &t.Sends)
			if p.kindOf(m) == ofHosts {
				t.Abroad += took
			}
		}
		if t := found[to]; t != nil {
			t.add(took, known, &t.Receives)
		}
	}
	return all
}

// host is the memory of a host, and the part that its devices use.
type host struct {
	streams.HostInfo
	name string
	own  int64
}

// hosts returns the hosts of all processes, each once.
func (p *Plan) hosts() (all []*host) {
	byNode := map[int]*host{}
	for process, k := range p.parts {
		node, name := 0, "the host"
		if g := p.Place.Processes; !g.IsAlone() {
			node, name = g.Nodes[process], "host "+g.Hosts[process]+" itself"
		}
		if byNode[node] == nil {
			byNode[node] = &host{HostInfo: k.Host, name: name}
			all = append(all, byNode[node])
		}
		for _, m := range k.Memory {
			byNode[node].own += m.Own
		}
	}
	return all
}
