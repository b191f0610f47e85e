package datatypes

import (
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// Figure is a figure of a paper, drawn of a record of one kind.
type Figure struct {
	Name, Title string
	Of          results.Kind
	Draw        func(r *results.Record) plot.Curves
}

// Figures returns those of packing, and then those of ping-pongs.
func Figures() (all []Figure) {
	for _, f := range packFigures() {
		all = append(all, Figure{f.name, f.title, results.KindPack, f.draw})
	}
	for _, f := range pingFigures() {
		all = append(all, Figure{f.name, f.title, results.KindPingPong, f.draw})
	}
	return all
}
