package halo

import (
	"fmt"
	"time"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// choosePaths gives every message its path.
func (p *Plan) choosePaths(links *p2p.Links, want p2p.Path) (err error) {
	devices := p.Placement.Devices
	for i := range p.Messages {
		m := &p.Messages[i]
		if !p.Placement.Processes.IsAlone() && p.acrossProcesses(m) {
			continue
		}
		if m.Path, m.Why, err = links.Choose(want, devices[m.From], devices[m.To], shapeOf(*m)); err != nil {
			return err
		}
	}
	if want == p2p.Auto && p.Path() != string(p2p.Direct) {
		p.preferDirect(links)
	}
	return nil
}

// acrossProcesses gives a message its path if this process does not have both of its ends.
func (p *Plan) acrossProcesses(m *Message) bool {
	from, to := p.Placement.Owners[m.From], p.Placement.Owners[m.To]
	switch {
	case from != to:
		m.Path, m.Why = p2p.MPI, p.Placement.whyMPI(from, to)
	case !p.Placement.IsLocal(m.From):
		m.Path, m.Why = "", fmt.Sprintf("within %s", p.Placement.Processes.Name(from))
	default:
		return false
	}
	return true
}

// whyMPI says why a message between two processes takes path mpi.
func (p *Placement) whyMPI(from, to int) string {
	all := p.Processes
	if all.Nodes[from] == all.Nodes[to] {
		return fmt.Sprintf("from rank %d to rank %d of host %s: a process reaches no other's memory", from, to, all.Hosts[from])
	}
	return fmt.Sprintf("from %s to %s: another host", all.Name(from), all.Name(to))
}

func shapeOf(m Message) p2p.MessageShape {
	return p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous}
}

// preferDirect takes path direct for all messages, where that is possible and one
// kernel a GPU brings them all sooner than each its own fastest path, by what was
// measured. Where nothing was, it does: it spares all but one launch a GPU.
func (p *Plan) preferDirect(links *p2p.Links) {
	if !p.canBeDirect(links) {
		return
	}
	why := "one kernel a GPU does the whole exchange"
	together, each, ok := p.forecast(links.Model)
	if ok {
		if together > each {
			return
		}
		why = fmt.Sprintf("%s: %s; message by message %s", why, p2p.Microseconds(together), p2p.Microseconds(each))
	}
	for i := range p.Messages {
		if m := &p.Messages[i]; m.From != m.To {
			m.Path, m.Why = p2p.Direct, why
		}
	}
}

// canBeDirect reports whether one kernel a GPU can do the whole exchange: every
// subdomain has a GPU of its own, all links are usable, and no values have gaps.
func (p *Plan) canBeDirect(links *p2p.Links) bool {
	devices := p.Placement.Devices
	if !p.Placement.Processes.IsAlone() || !haveOwnGPUs(devices) || p.hasGaps() {
		return false
	}
	for _, m := range p.Messages {
		if m.From == m.To {
			continue
		}
		if link := links.Between(devices[m.From], devices[m.To]); link == nil || !link.Usable {
			return false
		}
	}
	return true
}

// haveOwnGPUs reports whether the subdomains, one for each device, lie on GPUs, and
// each on another.
func haveOwnGPUs(devices []*streams.Device) bool {
	seen := map[*streams.Device]bool{}
	for _, d := range devices {
		if seen[d] || d.GoKernels {
			return false
		}
		seen[d] = true
	}
	return true
}

// forecast returns how long the device that sends longest is busy: with one kernel
// for all messages, and with each over the path that it has. ok is false where that
// was not measured.
func (p *Plan) forecast(model *p2p.LinkModel) (together, each time.Duration, ok bool) {
	for rank := range p.Placement.Devices {
		out := p.outgoing(rank)
		var sum, slowest time.Duration
		total := p2p.MessageShape{}
		for _, m := range out {
			total.Bytes += m.Bytes
		}
		for _, m := range out {
			t, known := p.time(model, m, m.Path, shapeOf(m))
			d, knownDirect := p.time(model, m, p2p.Direct, total)
			if !known || !knownDirect {
				return 0, 0, false
			}
			sum, slowest = sum+t, max(slowest, d)
		}
		together, each = max(together, slowest), max(each, sum)
	}
	return together, each, true
}

// outgoing returns the messages of a rank to others.
func (p *Plan) outgoing(rank int) (out []Message) {
	for _, m := range p.Messages {
		if m.From == rank && m.To != rank {
			out = append(out, m)
		}
	}
	return out
}

// time returns how long a message takes between the ends of a message.
func (p *Plan) time(model *p2p.LinkModel, m Message, path p2p.Path, shape p2p.MessageShape) (time.Duration, bool) {
	return model.Time(p.Placement.Devices[m.From], p.Placement.Devices[m.To], path, shape)
}

// Path returns the path that all messages between different devices take, ""
// if there are none, and "mixed" where they differ. Those within other processes do not count.
func (p *Plan) Path() string {
	path := ""
	for _, m := range p.Messages {
		switch {
		case p.Placement.onOneDevice(m.From, m.To) || m.Path == "":
		case path == "":
			path = string(m.Path)
		case path != string(m.Path):
			return "mixed"
		}
	}
	return path
}
