// Package workloads holds the layouts that benchmarks of MPI datatypes use, with their published parameters: DDTBench
// (Schneider, Gerstenberger and Hoefler 2012), TEMPI (Pearson et al. 2021), and the figures of Jenkins et al. (2014), of Shi
// et al.'s HAND (2014) and of Wu et al. (2016). What a paper leaves open is said where it was chosen.
//
// Index lists are shuffled with a fixed seed: they are the same in every process.
package workloads

import (
	"github.com/halox/halox/halo/datatype"
)

// A Side is what one end of a message takes out of, or puts into, an array of its own.
type Side struct {
	Type   *datatype.Type
	Count  int
	Origin int64 // where displacement 0 lies in the array, in bytes
	Array  int64 // the size of the array in bytes
}

// A Workload is one message: a layout with one set of parameters.
type Workload struct {
	Suite  string // ddtbench, tempi, jenkins, hand, wu, shoc or hacc
	Name   string // of the layout in its suite
	Params string // key=value, with commas
	Send   Side
	Recv   Side
	Bytes  int64 // when packed
}

// String returns suite/name/params, fit for the name of a benchmark.
func (w Workload) String() string { return w.Suite + "/" + w.Name + "/" + w.Params }
