package sparse

import (
	"flag"
	"fmt"
)

// Rates say how fast a machine is, for the model. Those of an H200 are the defaults.
type Rates struct {
	Memory float64 // of a device, GB/s
	Link   float64 // from a device to others, GB/s
	Hop    float64 // a put with its notification, or a step of a barrier, us
}

func (r *Rates) flags(f *flag.FlagSet) {
	f.Float64Var(&r.Memory, "memory-rate", 4000, "GB/s of a device's memory, for the model")
	f.Float64Var(&r.Link, "link-rate", 360, "GB/s from a device to others, for the model")
	f.Float64Var(&r.Hop, "hop", 2.4, "us of a put with its notification, for the model")
}

func (r *Rates) check() error {
	if !(r.Memory > 0 && r.Link > 0 && r.Hop >= 0) {
		return fmt.Errorf("--memory-rate %g --link-rate %g --hop %g: want rates above 0 and a time from 0 on", r.Memory, r.Link, r.Hop)
	}
	return nil
}
