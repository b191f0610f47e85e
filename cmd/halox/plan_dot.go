package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

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
	for _, m := range w.plan.Messages {
		fmt.Fprintf(&b, "\t%d -> %d [label=%q]\n", m.From, m.To, fmt.Sprintf("%s %s %s", directions(m), streams.Size(m.Bytes), m.Path))
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
	for _, s := range w.place.Subdomains {
		if w.devices[s.Rank] == d {
			fmt.Fprintf(b, "\t\t%d [label=%q]\n", s.Rank, fmt.Sprintf("%d\n%v", s.Rank, s.Box))
		}
	}
	b.WriteString("\t}\n")
}
