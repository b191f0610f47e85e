package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/streams"
)

// PrintHead prints the problem, the devices and the scheme of a setup.
func PrintHead(out io.Writer, s *solvers.Setup, solver string) {
	g, dims := s.Place.Grid, len(s.Problem.Spacing)
	fmt.Fprintf(out, "%s on %s points in %s, decomposition %s on %s, scheme %s\n", solver, domain.Times(g.Size[:dims]),
		s.Problem.Element, domain.Times(s.Place.Parts[:dims]), s.Counted(), s.Scheme)
	if steps := s.Problem.Group; steps > 1 {
		width := s.Problem.Width()
		low, high := width.Minus[:dims], width.Plus[:dims]
		ghosts := fmt.Sprintf("%v wide", low)
		if !slices.Equal(low, high) {
			ghosts = fmt.Sprintf("%v wide at low sides and %v at high ones", low, high)
		}
		fmt.Fprintf(out, "%d steps between two exchanges: ghosts %s, %d ghosts swept in addition to %d points\n",
			steps, ghosts, s.Problem.ExtraPoints(s.Place), int64(steps)*g.Points())
	}
	if s.Place.Mapping != nil {
		fmt.Fprintf(out, "placement: %v\n", s.Place.Mapping)
	}
}

// Print prints all tables. The error names a device with too little memory.
func (p *Plan) Print(out io.Writer) error {
	PrintHead(out, p.Setup, p.solver)
	p.printSubdomains(out)
	p.printMessages(out)
	p.printLinks(out)
	p.printNetworks(out)
	if !slices.ContainsFunc(p.parts, func(k part) bool { return k.Memory == nil }) {
		p.printMemory(out)
		p.printTimes(out)
	}
	return p.unfit()
}

// table prints a title and rows of cells separated by tabs.
func table(out io.Writer, title string, header string, rows func(w io.Writer)) {
	fmt.Fprintf(out, "\n%s\n", title)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, header)
	rows(t)
	t.Flush()
}

func (p *Plan) printSubdomains(out io.Writer) {
	header, processes := "rank\tdevice\tlo\thi\tpoints", p.Place.Processes
	if !processes.IsAlone() {
		header += "\thost"
	}
	table(out, "subdomains, from lo up to but excluding hi", header, func(t io.Writer) {
		for _, s := range p.Place.Subdomains {
			fmt.Fprintf(t, "%d\t%s\t%v\t%v\t%d", s.Rank, p.device(s.Rank).Name, s.Box.Lo, s.Box.Hi, s.Box.Points())
			if !processes.IsAlone() {
				fmt.Fprintf(t, "\t%s", processes.Hosts[p.Place.Owners[s.Rank]])
			}
			fmt.Fprintln(t)
		}
	})
}

// every returns one if each step has an exchange, otherwise several with the exchange interval, such as "every 4
// steps".
func (p *Plan) every(one, several string) string {
	if p.Problem.Group > 1 {
		return fmt.Sprintf("%s%d steps", several, p.Problem.Group)
	}
	return one
}

func (p *Plan) printMessages(out io.Writer) {
	n := len(p.Plan.Messages)
	if n == 0 {
		fmt.Fprintln(out, "\nno messages: no subdomain has a neighbor")
		return
	}
	title := fmt.Sprintf("%d messages of %s", n, p.every("one step", ""))
	if n == 1 {
		title = strings.Replace(title, "messages", "message", 1)
	}
	table(out, title, "from\tto\tdirection\tpoints sent\tdestination ghosts\tbytes\tform\tpath\twhy",
		func(t io.Writer) {
			for _, m := range p.Plan.Messages {
				for i, s := range m.Parts {
					if i > 0 {
						fmt.Fprintf(t, "\t\t%v\t%v\t%v\t\t\t\tin the same message\n", s.Dir, s.Send, s.Ghost)
						continue
					}
					fmt.Fprintf(t, "%d\t%d\t%v\t%v\t%v\t%d\t%s\t%s\t%s\n", m.From, m.To, s.Dir, s.Send, s.Ghost,
						m.Bytes, form(m), m.Path, m.Why)
				}
			}
		})
}

// form returns the form in which a message is sent.
func form(m halo.Message) string {
	switch {
	case m.Path.Traits().Stored:
		return "stored"
	case m.Contiguous:
		return "contiguous"
	}
	return "packed"
}

// load is the total of messages.
type load struct {
	messages int
	bytes    int64
	paths    []string
}

func (l *load) add(m halo.Message) {
	l.messages, l.bytes = l.messages+1, l.bytes+m.Bytes
	if path := string(m.Path); !slices.Contains(l.paths, path) {
		l.paths = append(l.paths, path)
	}
}

func (p *Plan) printLinks(out io.Writer) {
	if len(p.Plan.Messages) == 0 {
		return
	}
	type key struct{ from, to, kind string }
	var order []key
	loads := map[key]*load{}
	for i, m := range p.Plan.Messages {
		k := key{p.device(m.From).Name, p.device(m.To).Name, p.link(i).Kind}
		if loads[k] == nil {
			loads[k], order = &load{}, append(order, k)
		}
		loads[k].add(m)
	}
	each := p.every("per step", "every ")
	table(out, "links", "from\tto\tlink\tmessages\tbytes "+each+"\tpath", func(t io.Writer) {
		for _, k := range order {
			l := loads[k]
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\n", k.from, k.to, k.kind, l.messages, l.bytes,
				strings.Join(l.paths, " "))
		}
	})
	fmt.Fprintf(out, "from device to device: %s %s\n", streams.Size(p.Plan.Bytes()), each)
	if g := p.Place.Processes; !g.IsAlone() {
		within, across := g.Used()
		p.printCrossing(out, ofProcesses, "between processes of one host", within)
		p.printCrossing(out, ofHosts, "between hosts", across)
	}
}

// printCrossing prints the messages between processes over links of a kind.
func (p *Plan) printCrossing(out io.Writer, kind, between string, network mpi.Network) {
	g := p.Place.Processes
	var all load
	sent, most := map[int]int64{}, int64(0) // by host
	for i, m := range p.Plan.Messages {
		if p.link(i).Kind == kind {
			all.add(m)
			node := g.Nodes[p.Place.Owners[m.From]]
			sent[node] += m.Bytes
			most = max(most, sent[node])
		}
	}
	if all.messages == 0 {
		return
	}
	carried := "through pinned memory, sent by " + g.Library
	switch network {
	case mpi.Device:
		carried = "as device memory, sent by " + g.Library
	case mpi.NCCL:
		carried = "as device memory, sent by " + g.NCCL()
	case mpi.IPC:
		carried = "into memory of the receiver"
	}
	fmt.Fprintf(out, "%s: %d messages, %s %s, of one host at most %s; network %s: packed on the device, %s\n", between,
		all.messages, streams.Size(all.bytes), p.every("per step", "every "), streams.Size(most), network, carried)
}

// printNetworks prints the networks that were tried, and the times of messages.
func (p *Plan) printNetworks(out io.Writer) {
	if len(p.networks) == 0 || len(p.Plan.Messages) == 0 {
		return
	}
	table(out, "networks between processes, from the first call to the arrival",
		"network\tbetween\t64 KiB\t1 MiB\t4 MiB\twhy not", func(t io.Writer) {
			for _, n := range p.networks {
				if n.Why != "" {
					fmt.Fprintf(t, "%s\t\t\t\t\t%s\n", n.Network, n.Why)
				}
				for between, c := range kinds(n.SameHost, n.OtherHosts) {
					fmt.Fprintf(t, "%s\t%s", n.Network, between)
					for _, bytes := range []int64{64 << 10, 1 << 20, 4 << 20} {
						took := c.Curve.Time(bytes)
						fmt.Fprintf(t, "\t%s, %.2f GB/s", p2p.Microseconds(took), float64(bytes)/took.Seconds()/1e9)
					}
					fmt.Fprintln(t, "\t")
				}
			}
		})
}

// kinds yields the existing curves of messages within hosts and between hosts.
func kinds(within, across *halo.ProcessCurve) func(yield func(string, *halo.ProcessCurve) bool) {
	return func(yield func(string, *halo.ProcessCurve) bool) {
		if within != nil && !yield("processes of one host", within) {
			return
		}
		if across != nil {
			yield("hosts", across)
		}
	}
}

// printTimes prints the time of an exchange for each device, and for all of them.
func (p *Plan) printTimes(out io.Writer) {
	if len(p.Plan.Messages) == 0 {
		return
	}
	g := p.Place.Processes
	var least, most time.Duration
	unknown, byHost := 0, map[int]time.Duration{}
	table(out, "exchange of "+p.every("a step", "")+", predicted from the measured links",
		"device\tall sends\tall receives\tlongest message", func(t io.Writer) {
			for process, k := range p.parts {
				for _, f := range k.Times {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Device, p2p.Microseconds(f.Sends),
						p2p.Microseconds(f.Receives), p2p.Microseconds(f.Longest))
					least, most = max(least, f.Longest), max(most, f.Sends, f.Receives)
					unknown += f.Unknown
					if !g.IsAlone() {
						byHost[g.Nodes[process]] += f.Abroad
						most = max(most, byHost[g.Nodes[process]])
					}
				}
			}
		})
	also := ""
	if !g.IsAlone() && slices.Max(g.Nodes) > 0 {
		also = ",\nand each host those to other hosts one after the other"
	}
	fmt.Fprintf(out, "an exchange takes %s if all messages travel at once (the longest message), %s if each device\n"+
		"handles its messages one after the other, sending and receiving at once (the busiest device)%s\n",
		p2p.Microseconds(least), p2p.Microseconds(most), also)
	if p.between != nil {
		for between, c := range kinds(p.between.SameHost, p.between.OtherHosts) {
			first, last := c.Curve[0], c.Curve[len(c.Curve)-1]
			fmt.Fprintf(out, "messages between %s count as those between %s and %s: %s for %s, %s for %s, packed, "+
				"sent and unpacked\n", between, g.Name(c.From), g.Name(c.To), p2p.Microseconds(first.Time),
				streams.Size(first.Bytes), p2p.Microseconds(last.Time), streams.Size(last.Bytes))
		}
	}
	if unknown > 0 {
		fmt.Fprintln(out, "some messages have no measured time; they count as 0")
	}
}

// printMemory prints the memory of a run and the available memory, for each device and each host.
func (p *Plan) printMemory(out io.Writer) {
	size := func(bytes, total int64) string {
		if total == 0 { // not known
			return "-"
		}
		return streams.Size(bytes)
	}
	table(out, "memory of a run in bytes", "device\tfield\tother\tpinned on the host\tcopy\tfree\ttotal",
		func(t io.Writer) {
			for _, k := range p.parts {
				for _, m := range k.Memory {
					fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", m.Device, m.Field, m.Beside, m.Pinned, m.Copy,
						size(m.Free, m.Total), size(m.Total, m.Total))
				}
			}
			for _, h := range p.hosts() {
				fmt.Fprintf(t, "%s\t\t\t%d\t\t%s\t%s\n", h.name, h.own, size(h.Free, h.Total), size(h.Total, h.Total))
			}
		})
	if source := p.parts[0].Host.Source; source != "" {
		fmt.Fprintf(out, "free memory of the host: %s\n", source)
	}
}

// WriteDot writes the plan as a graph for graphviz: a node for each subdomain, grouped by device, and an edge for each
// message.
func (p *Plan) WriteDot(out io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph halox {\n\trankdir=LR\n\tnode [shape=box]\n")
	seen := map[string]bool{}
	for rank := range p.Place.Subdomains {
		d := p.device(rank)
		if seen[d.Name] {
			continue
		}
		seen[d.Name] = true
		fmt.Fprintf(&b, "\tsubgraph %q {\n\t\tlabel=%q\n", "cluster "+d.Name, d.Name+" "+d.Model)
		for _, s := range p.Place.Subdomains {
			if p.device(s.Rank) == d {
				fmt.Fprintf(&b, "\t\t%d [label=%q]\n", s.Rank, fmt.Sprintf("%d\n%v", s.Rank, s.Box))
			}
		}
		b.WriteString("\t}\n")
	}
	for _, m := range p.Plan.Messages {
		var names []string // of the directions, such as "z+" or "x- x+"
		for _, s := range m.Parts {
			if name := s.Dir.String(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		fmt.Fprintf(&b, "\t%d -> %d [label=%q]\n", m.From, m.To,
			fmt.Sprintf("%s %s %s", strings.Join(names, " "), streams.Size(m.Bytes), m.Path))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// MarshalJSON returns the content of Print.
func (p *Plan) MarshalJSON() ([]byte, error) {
	type object = map[string]any
	var subdomains, messages []object
	for _, s := range p.Place.Subdomains {
		subdomains = append(subdomains, object{"rank": s.Rank, "device": p.device(s.Rank).Name, "lo": s.Box.Lo,
			"hi": s.Box.Hi})
	}
	for i, m := range p.Plan.Messages {
		var directions []string
		for _, s := range m.Parts {
			directions = append(directions, s.Dir.String())
		}
		messages = append(messages, object{"from": m.From, "to": m.To, "directions": directions, "bytes": m.Bytes,
			"form": form(m), "link": p.link(i).Kind, "path": m.Path, "why": m.Why})
	}
	memory, exchanges := []memory{}, []*times{}
	for _, k := range p.parts {
		memory, exchanges = append(memory, k.Memory...), append(exchanges, k.Times...)
	}
	dims := len(p.Problem.Spacing)
	return json.Marshal(object{
		"solver": p.solver, "size": p.Place.Grid.Size[:dims], "precision": p.Problem.Element, "scheme": p.Scheme,
		"decomposition": p.Place.Parts[:dims], "subdomains": subdomains, "messages": messages, "memory": memory,
		"exchanges": exchanges,
	})
}
