package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/solvers/scheme"
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

Plan opens the devices, tries their links and measures them, and allocates no
fields. It prints the subdomains, the messages of one exchange with their paths and
why, the bytes a link carries, what several steps between two exchanges sweep twice, what a run will hold on each device and on the
host, to the byte, beside what is free, and the time that one exchange takes by
the measured links. It fails where a run does: what does not fit is refused.

Scheme auto is the one that its trials found before; where nobody has tried the
schemes yet, run does, and plan shows the one that it would take without.

--dot prints the same as a graph for graphviz: halox plan --dot FILE | dot -Tsvg

--hosts predicts steps on more and more hosts, up to so many, without opening a device. A
model is fitted to the steps of one host in the records that --measured names; how far it
is from these is printed. --network names the networks between the hosts, or files with
latency_us, bandwidth_gb_s, adapters and message_us. strong is the config's grid on all
hosts, weak one that grows with them. What runs on one host alone is left out: resident, ranks.`,
		Example: `  halox plan heat3d.yaml
  halox bench schemes --record schemes.json
  halox plan heat3d.yaml --hosts 1024 --network hdr200,ndr400x4 --devices-per-host 4 --measured schemes.json --plot hosts.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("hosts") {
				return planHostsOf(cmd.Context(), cmd.OutOrStdout(), args[0], set, &hosts)
			}
			return planFile(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], set, dot)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "override a key of the config, as `key=value`; may be repeated")
	cmd.Flags().BoolVar(&dot, "dot", false, "print a graph for graphviz")
	hosts.add(cmd.Flags())
	return cmd
}

// planFile is the command.
func planFile(ctx context.Context, out, notes io.Writer, file string, set []string, dot bool) (err error) {
	config, err := loadConfig(file, set)
	if err != nil {
		return err
	}
	if err := checkRun(ctx, file, config); err != nil {
		return err
	}
	w, err := newSetup(ctx, config, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if dot {
		return writeDot(out, w)
	}
	during(ctx, "measuring the links", nil)
	if err := w.session.Measure(ctx); err != nil {
		return err
	}
	if err := w.recall(ctx); err != nil {
		return err
	}
	return w.print(ctx, out)
}

// print writes all tables. The error says which device has too little memory.
func (w *setup) print(ctx context.Context, out io.Writer) error {
	w.printHead(out)
	w.printSubdomains(out)
	w.printMessages(out)
	w.printLinks(out)
	memory, err := w.memory(ctx)
	if err != nil {
		return err
	}
	if err := printMemory(out, memory); err != nil {
		return err
	}
	w.printForecast(out)
	return scheme.Fit(memory)
}

func (w *setup) printHead(out io.Writer) {
	c := w.config
	fmt.Fprintf(out, "%s on %s points in %s, cut %s for %s, scheme %s\n",
		c.Solver, times(c.Grid.Size), c.Precision, times(w.place.Parts[:c.Dims()]), w.counted(), w.scheme)
	w.printGroup(out)
	if w.place.Mapping != nil {
		fmt.Fprintf(out, "placement: %v\n", w.place.Mapping)
	}
}

// counted says how many devices there are.
func (w *setup) counted() string {
	if len(w.place.Devices) == 1 {
		return fmt.Sprintf("1 %s device", w.session.Backend)
	}
	return fmt.Sprintf("%d %s devices", len(w.place.Devices), w.session.Backend)
}

func (w *setup) printSubdomains(out io.Writer) {
	table(out, "subdomains, from lo to below hi", "rank\tdevice\tlo\thi\tpoints", func(t io.Writer) {
		for _, s := range w.place.Subdomains {
			fmt.Fprintf(t, "%d\t%v\t%v\t%v\t%d\n", s.Rank, w.place.Devices[s.Rank], s.Box.Lo, s.Box.Hi, s.Box.Points())
		}
	})
}

func (w *setup) printMessages(out io.Writer) {
	if len(w.plan.Messages) == 0 {
		fmt.Fprintln(out, "\nno messages: nobody has a neighbour")
		return
	}
	title := fmt.Sprintf("%d messages of %s", len(w.plan.Messages), w.each())
	if len(w.plan.Messages) == 1 {
		title = "1 message of " + w.each()
	}
	table(out, title, "from\tto\tdirection\tpoints sent\tghosts that get them\tbytes\tform\tpath\twhy", func(t io.Writer) {
		for _, m := range w.plan.Messages {
			for i, p := range m.Parts {
				if i == 0 {
					fmt.Fprintf(t, "%d\t%d\t%v\t%v\t%v\t%d\t%s\t%s\t%s\n", m.From, m.To, p.Dir, p.Send, p.Ghost, m.Bytes, form(m), m.Path, m.Why)
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
func (w *setup) loads() (all []*load) {
	found := map[[2]string]*load{}
	for _, m := range w.plan.Messages {
		from, to := w.place.Devices[m.From], w.place.Devices[m.To]
		key := [2]string{from.String(), to.String()}
		l := found[key]
		if l == nil {
			l = &load{from: key[0], to: key[1], kind: "itself"}
			if link := w.session.Links.Between(from, to); link != nil {
				l.kind = orDash(link.Kind)
			}
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

func (w *setup) printLinks(out io.Writer) {
	loads := w.loads()
	if len(loads) == 0 {
		return
	}
	table(out, "links", "from\tto\tlink\tmessages\tbytes "+w.by()+"\tpath", func(t io.Writer) {
		for _, l := range loads {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\n", l.from, l.to, l.kind, l.messages, l.bytes, l.paths)
		}
	})
	fmt.Fprintf(out, "from device to device: %s %s\n", streams.Size(w.plan.Bytes()), w.by())
}
