package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func newPlanCommand() *cobra.Command {
	var set []string
	var dot bool
	var hosts hostsFlags
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what a run of a config file would exchange, and whether it fits",
		Long: `Show what a run of a config file would exchange, and whether it fits.

Plan opens the devices and measures their links, and allocates no fields. It prints the
subdomains, the messages of one exchange with their paths and the reasons, the bytes per link,
the points that several steps between two exchanges sweep twice, the memory that a run needs
on each device and on the host, to the byte, with what is free, and the predicted time of an
exchange. It fails if a run would. Scheme auto is the one that earlier trials found, or what
run would take without trials.

Started by mpirun, it also shows which messages go to other processes and hosts, how and why,
and the memory of all processes.

--dot prints the same as a graph for graphviz: halox plan --dot FILE | dot -Tsvg

--hosts predicts steps on more and more hosts, up to so many, without opening a device. A model
is fitted to the steps of one host in the records that --measured names, and its error is
printed. --network names the networks between the hosts, or files with latency_us,
bandwidth_gb_s, adapters and message_us. Steps of several hosts are used too, named with the
network that joined them: FILE@NETWORK. strong is the config's grid on all hosts, weak one that
grows with them. Schemes for a single process are left out.`,
		Example: `  halox plan heat3d.yaml
  halox bench schemes --record schemes.json
  halox plan heat3d.yaml --hosts 1024 --network hdr200,ndr400x4 --measured schemes.json --plot hosts.svg`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
				if !cmd.Flags().Changed("hosts") {
					if err := hosts.unused(cmd.Flags()); err != nil {
						return err
					}
					return planFile(cmd.Context(), g, out, notes, args[0], set, dot)
				}
				if err := g.checkAlone("plan --hosts", "it predicts steps of hosts that are not there, and needs no "+
					"launcher"); err != nil {
					return err
				}
				return planHosts(cmd.Context(), out, args[0], set, cmd.Flags(), &hosts)
			})
		},
	}
	addSet(cmd, &set)
	cmd.Flags().BoolVar(&dot, "dot", false, "print a graph for graphviz")
	hosts.add(cmd.Flags())
	return cmd
}

// planFile is the command.
func planFile(ctx context.Context, g *processGroup, out, notes io.Writer, file string, set []string,
	dot bool) (err error) {
	config, err := g.config(ctx, func() (*configs.Run, error) {
		config, err := loadConfig(g.Size(), file, set)
		if err != nil {
			return nil, err
		}
		return config, checkRun(ctx, file, config)
	})
	if err != nil {
		return err
	}
	w, err := newSetup(ctx, config, g.Processes, notes, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if !dot {
		during(ctx, "measuring the links", nil)
		if err := w.Place.Agree(ctx, "measure the links", w.Session.Measure(ctx)); err != nil {
			return err
		}
		if err := w.Recall(ctx); err != nil {
			return err
		}
	}
	v, err := w.view(ctx, dot)
	if err != nil {
		return err
	}
	if dot {
		return v.writeDot(out)
	}
	return v.print(out)
}

// print writes all tables. The error names a device that has too little memory.
func (w *view) print(out io.Writer) error {
	w.printHead(out)
	w.printSubdomains(out)
	w.printMessages(out)
	w.printLinks(out)
	if !slices.ContainsFunc(w.known, func(k knowledge) bool { return k.Memory == nil }) {
		w.printMemory(out)
		w.printForecast(out)
	}
	return w.unfit
}

func (w *setup) printHead(out io.Writer) {
	c := w.config
	fmt.Fprintf(out, "%s on %s points in %s, cut %s for %s, scheme %s\n",
		c.Solver, times(c.Grid.Size), c.Precision, times(w.Place.Parts[:c.Dims()]), w.counted(), w.Scheme)
	w.printGroup(out)
	if w.Place.Mapping != nil {
		fmt.Fprintf(out, "placement: %v\n", w.Place.Mapping)
	}
}

// counted returns the number of devices in words: "4 CPU devices".
func (w *setup) counted() string {
	if len(w.Place.Devices) == 1 {
		return fmt.Sprintf("1 %s device", w.Session.Backend)
	}
	text := fmt.Sprintf("%d %s devices", len(w.Place.Devices), w.Session.Backend)
	if p := w.Place.Processes; !p.IsAlone() {
		text += " of " + manyProcesses(p)
	}
	return text
}

func (w *view) printSubdomains(out io.Writer) {
	header, processes := "rank\tdevice\tlo\thi\tpoints", w.Place.Processes
	if !processes.IsAlone() {
		header += "\thost"
	}
	table(out, "subdomains, from lo to below hi", header, func(t io.Writer) {
		for _, s := range w.Place.Subdomains {
			fmt.Fprintf(t, "%d\t%s\t%v\t%v\t%d", s.Rank, w.devices[s.Rank].Name, s.Box.Lo, s.Box.Hi, s.Box.Points())
			if !processes.IsAlone() {
				fmt.Fprintf(t, "\t%s", processes.Hosts[w.Place.Owners[s.Rank]])
			}
			fmt.Fprintln(t)
		}
	})
}

func (w *view) printMessages(out io.Writer) {
	if len(w.Plan.Messages) == 0 {
		fmt.Fprintln(out, "\nno messages: nobody has a neighbour")
		return
	}
	title := fmt.Sprintf("%d messages of %s", len(w.Plan.Messages), w.each())
	if len(w.Plan.Messages) == 1 {
		title = "1 message of " + w.each()
	}
	table(out, title, "from\tto\tdirection\tpoints sent\tghosts that get them\tbytes\tform\tpath\twhy",
		func(t io.Writer) {
			for _, m := range w.Plan.Messages {
				for i, p := range m.Parts {
					if i == 0 {
						fmt.Fprintf(t, "%d\t%d\t%v\t%v\t%v\t%d\t%s\t%s\t%s\n", m.From, m.To, p.Dir, p.Send, p.Ghost,
							m.Bytes, form(m), m.Path, m.Why)
						continue
					}
					fmt.Fprintf(t, "\t\t%v\t%v\t%v\t\t\t\tin the same message\n", p.Dir, p.Send, p.Ghost)
				}
			}
		})
}

// form says how a message travels.
func form(m halo.Message) string {
	switch {
	case m.Path.Traits().Stored:
		return "stored"
	case m.Contiguous:
		return "as it lies"
	}
	return "packed"
}

// load is what one link carries in an exchange.
type load struct {
	from, to string
	kind     string
	messages int
	bytes    int64
	paths    string
}

// loads returns the links that carry messages, in the order of their first.
func (w *view) loads() (all []*load) {
	found := map[[2]string]*load{}
	for i, m := range w.Plan.Messages {
		key := [2]string{w.devices[m.From].Name, w.devices[m.To].Name}
		l := found[key]
		if l == nil {
			l = &load{from: key[0], to: key[1], kind: w.links[i].Kind}
			found[key] = l
			all = append(all, l)
		}
		l.messages++
		l.bytes += m.Bytes
		if !strings.Contains(l.paths, string(m.Path)) {
			l.paths = strings.TrimPrefix(l.paths+" "+string(m.Path), " ")
		}
	}
	return all
}

func (w *view) printLinks(out io.Writer) {
	loads := w.loads()
	if len(loads) == 0 {
		return
	}
	table(out, "links", "from\tto\tlink\tmessages\tbytes "+w.by()+"\tpath", func(t io.Writer) {
		for _, l := range loads {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\n", l.from, l.to, l.kind, l.messages, l.bytes, l.paths)
		}
	})
	fmt.Fprintf(out, "from device to device: %s %s\n", streams.Size(w.Plan.Bytes()), w.by())
	w.printCrossing(out)
}

// printGroup says what several steps between two exchanges take.
func (w *setup) printGroup(out io.Writer) {
	steps := w.Problem.Group
	if steps == 1 {
		return
	}
	width, extra := w.Problem.Width(), w.Problem.ExtraPoints(w.Place)
	dims := w.config.Dims()
	ghosts := fmt.Sprintf("%v wide", width.Minus[:dims])
	if width.Minus != width.Plus {
		ghosts = fmt.Sprintf("%v wide at low sides and %v at high ones", width.Minus[:dims], width.Plus[:dims])
	}
	fmt.Fprintf(out, "%d steps between two exchanges: ghosts %s, %d ghosts swept beside %d points in these steps\n",
		steps, ghosts, extra, int64(steps)*w.Problem.Grid.Points())
}

// writeDot writes the plan as a graph for graphviz: a node a subdomain, grouped by
// device, and an edge a message.
func (w *view) writeDot(out io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph halox {\n\trankdir=LR\n\tnode [shape=box]\n")
	seen := map[string]bool{}
	for _, d := range w.devices {
		if !seen[d.Name] {
			seen[d.Name] = true
			w.dotDevice(&b, d)
		}
	}
	for _, m := range w.Plan.Messages {
		fmt.Fprintf(&b, "\t%d -> %d [label=%q]\n", m.From, m.To,
			fmt.Sprintf("%s %s %s", directions(m), streams.Size(m.Bytes), m.Path))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// directions names those in which a message goes, as "z+" or "x- x+".
func directions(m halo.Message) string {
	var names []string
	for _, p := range m.Parts {
		if name := p.Dir.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// dotDevice writes a device with its subdomains.
func (w *view) dotDevice(b *strings.Builder, d deviceView) {
	fmt.Fprintf(b, "\tsubgraph %q {\n\t\tlabel=%q\n", "cluster "+d.Name, d.Name+" "+d.Model)
	for _, s := range w.Place.Subdomains {
		if w.devices[s.Rank] == d {
			fmt.Fprintf(b, "\t\t%d [label=%q]\n", s.Rank, fmt.Sprintf("%d\n%v", s.Rank, s.Box))
		}
	}
	b.WriteString("\t}\n")
}

// printCrossing says what goes from one process to another, and from one host to another.
func (w *view) printCrossing(out io.Writer) {
	p := w.Place.Processes
	if p.IsAlone() {
		return
	}
	within, across := p.Used()
	for _, between := range []struct {
		kind, what string
		network    mpi.Network
	}{{linkOfProcesses, "between processes of one host", within}, {linkOfHosts, "between hosts", across}} {
		messages, bytes := 0, int64(0)
		sent := map[int]int64{} // by host
		most := int64(0)
		for i, m := range w.Plan.Messages {
			if w.links[i].Kind == between.kind {
				messages, bytes = messages+1, bytes+m.Bytes
				node := p.Nodes[w.Place.Owners[m.From]]
				sent[node] += m.Bytes
				most = max(most, sent[node])
			}
		}
		if messages == 0 {
			continue
		}
		fmt.Fprintf(out, "%s: %d messages, %s %s, of one host at most %s; network %s: packed on the device, %s\n",
			between.what, messages, streams.Size(bytes), w.by(), streams.Size(most), between.network,
			carried(p, between.network))
	}
	w.printNetworks(out)
}

// carried says how a network carries packed messages.
func carried(p *mpi.Processes, n mpi.Network) string {
	switch n {
	case mpi.Device:
		return "as device memory, sent by " + p.Library
	case mpi.NCCL:
		return "as device memory, sent by " + p.NCCL()
	}
	return "through pinned memory, sent by " + p.Library
}

// printNetworks says which networks were tried, and what messages take.
func (w *view) printNetworks(out io.Writer) {
	if len(w.networks) == 0 {
		return
	}
	table(out, "networks between processes, from the first call to the arrival",
		"network\tbetween\t64 KiB\t1 MiB\t4 MiB\twhy not", func(t io.Writer) {
			for _, n := range w.networks {
				if n.Why != "" {
					fmt.Fprintf(t, "%s\t\t\t\t\t%s\n", n.Network, n.Why)
				}
				printCurve(t, n.Network, "processes of one host", n.Within)
				printCurve(t, n.Network, "hosts", n.Across)
			}
		})
}

// printCurve writes what messages of some sizes take.
func printCurve(out io.Writer, n mpi.Network, between string, c *halo.ProcessCurve) {
	if c == nil {
		return
	}
	fmt.Fprintf(out, "%s\t%s", n, between)
	for _, bytes := range []int64{64 << 10, 1 << 20, 4 << 20} {
		took := c.Curve.Time(bytes)
		fmt.Fprintf(out, "\t%s, %.2f GB/s", p2p.Microseconds(took), float64(bytes)/took.Seconds()/1e9)
	}
	fmt.Fprintln(out, "\t")
}

func (w *view) printForecast(out io.Writer) {
	if len(w.Plan.Messages) == 0 {
		return
	}
	var least, most time.Duration
	unknown, byHost := 0, map[int]time.Duration{}
	title := "exchange of a step, predicted from the measured links"
	if w.Problem.Group > 1 {
		title = "exchange of " + w.each() + ", predicted from the measured links"
	}
	table(out, title, "device\tall it sends\tall it receives\tits longest message", func(t io.Writer) {
		for process, k := range w.known {
			for _, f := range k.Times {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Device, p2p.Microseconds(f.Sends), p2p.Microseconds(f.Receives),
					p2p.Microseconds(f.Longest))
				least, most = max(least, f.Longest), max(most, f.atMost())
				unknown += f.Unknown
				if p := w.Place.Processes; !p.IsAlone() {
					byHost[p.Nodes[process]] += f.Abroad
					most = max(most, byHost[p.Nodes[process]])
				}
			}
		}
	})
	also := ""
	if p := w.Place.Processes; !p.IsAlone() && slices.Max(p.Nodes) > 0 {
		also = ",\nand each host those to other hosts one after the other"
	}
	fmt.Fprintf(out, "an exchange takes %s if all messages travel at once (the longest message), %s if each device\n"+
		"handles its messages one after the other, sending and receiving at once (the busiest device)%s\n",
		p2p.Microseconds(least), p2p.Microseconds(most), also)
	w.printBetween(out)
	if unknown > 0 {
		fmt.Fprintln(out, "some messages have no measured time; they count as 0")
	}
}

// printBetween says between which processes messages were measured, as which all others count.
func (w *view) printBetween(out io.Writer) {
	if w.between == nil {
		return
	}
	for _, kind := range []struct {
		what string
		*halo.ProcessCurve
	}{{"processes of one host", w.between.Within}, {"hosts", w.between.Across}} {
		if kind.ProcessCurve == nil {
			continue
		}
		first, last := kind.Curve[0], kind.Curve[len(kind.Curve)-1]
		p := w.Place.Processes
		fmt.Fprintf(out, "messages between %s count as those between %s and %s: %s for %s, %s for %s, packed, sent "+
			"and unpacked\n",
			kind.what, p.Name(kind.From), p.Name(kind.To), p2p.Microseconds(first.Time), streams.Size(first.Bytes),
			p2p.Microseconds(last.Time), streams.Size(last.Bytes))
	}
}

// printMemory writes what devices hold in a run and what they have, and the same of each host.
func (w *view) printMemory(out io.Writer) {
	table(out, "memory of a run in bytes", "device\tfield\tbeside it\tpinned on the host\tfree\ttotal",
		func(t io.Writer) {
			for _, k := range w.known {
				for _, m := range k.Memory {
					fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\n", m.Device, m.Field, m.Beside, m.Pinned,
						sizeOf(m.Free, m.Total), sizeOf(m.Total, m.Total))
				}
			}
			for _, h := range w.hosts() {
				fmt.Fprintf(t, "%s\t\t\t%d\t%s\t%s\n", h.name, h.own, sizeOf(h.Free, h.Total), sizeOf(h.Total, h.Total))
			}
		})
	if source := w.known[0].Host.Source; source != "" {
		fmt.Fprintf(out, "what is free on the host is %s\n", source)
	}
}

// sizeOf writes a number of bytes, "-" where the total is not known.
func sizeOf(bytes, total int64) string {
	if total == 0 {
		return "-"
	}
	return streams.Size(bytes)
}
