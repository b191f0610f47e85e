package main

// What links subdomains of different processes is called.
const (
	linkOfHosts     = "network"
	linkOfProcesses = "processes"
)

// kindOf says what links two subdomains, as far as this process knows.
func (w *setup) kindOf(from, to int) string {
	if p := w.place.Processes; !p.IsAlone() {
		a, b := w.place.Owners[from], w.place.Owners[to]
		switch {
		case p.Nodes[a] != p.Nodes[b]:
			return linkOfHosts
		case a != b:
			return linkOfProcesses
		}
	}
	if link := w.session.Links.Between(w.place.Devices[from], w.place.Devices[to]); link != nil {
		return orDash(link.Kind)
	}
	return "itself"
}
