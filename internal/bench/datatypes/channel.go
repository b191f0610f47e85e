package datatypes

import (
	"slices"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
)

// channel is how a message travels: what contends in a ping-pong.
type channel struct {
	path   p2p.Path
	engine packing.Engine
	remote bool
}

// String names it as results do.
func (l channel) String() string { return l.row().Contender() }

// row begins the row of a channel.
func (l channel) row() results.Row {
	row := results.NewRow().Label("path", l.path)
	if l.remote {
		row = row.Label("remote", "yes")
	}
	return row.Label("engine", l.engine)
}

// channelsOf returns those of paths and engines, each once. Of a path the driver's copies come
// last: the others are compared with them.
func channelsOf(paths, engines []string, remote bool) (all []channel) {
	chosen := chosenEngines(engines)
	if slices.Contains(chosen, packing.Copies) {
		chosen = append(chosen[1:], packing.Copies)
	}
	for _, path := range paths {
		for _, engine := range chosen {
			l := channel{p2p.Path(path), engine, remote && path == string(p2p.Peer)}
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}
