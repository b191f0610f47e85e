package halo

import (
	"math"
	"strings"

	"github.com/halox/halox/p2p/mpi"
)

// NetworkTrial is what came of trying a network between the processes.
type NetworkTrial struct {
	Network        mpi.Network   `json:"network"`
	Library        string        `json:"library"`       // that carries messages, in its own words
	Why            string        `json:"why,omitempty"` // it is not to be had; "" where it is
	Within, Across *ProcessCurve `json:",omitempty"`    // what messages take between processes of a host, and of two; nil where there are none
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
