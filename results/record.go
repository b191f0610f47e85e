package results

import (
	"time"

	"github.com/halox/halox/results/internal/wording"
)

// schemaVersion is the version of the record's layout that this package writes; the file
// record.schema.json describes it. It grows when a key changes its meaning, not when
// one is added.
const schemaVersion = 2

// A Kind says what a record is of.
type Kind string

// The kinds that this halox writes.
const (
	KindRun      Kind = "run"      // a problem solved; see Record.Run
	KindExchange Kind = "exchange" // exchanges of halos
	KindPack     Kind = "pack"     // datatypes packed on a device
	KindPingPong Kind = "pingpong" // datatypes sent there and back
	KindLinks    Kind = "links"    // rates from device to device
	KindLatency  Kind = "latency"  // times of the smallest pieces of work
	KindRanks    Kind = "ranks"    // messages, barriers and overlap of ranks
	KindSchemes  Kind = "schemes"  // steps by scheme, path and size
	KindScaling  Kind = "scaling"  // steps over the number of devices
	KindSweep    Kind = "sweep"    // sweeps on one device, by stencil and size
	KindForecast Kind = "forecast" // steps on hosts that are not there, predicted
)

// kinds returns all of them.
func kinds() []Kind {
	return []Kind{KindRun, KindExchange, KindPack, KindPingPong, KindLinks, KindLatency, KindRanks, KindSchemes, KindScaling, KindSweep, KindForecast}
}

// A Record is what one command leaves behind: who measured what, on which machine
// and how, and the rows that came of it.
type Record struct {
	Schema  int       `json:"schema"` // set by Write
	Kind    Kind      `json:"kind"`
	Halox   Program   `json:"halox"`             // the program that ran
	Command []string  `json:"command,omitempty"` // its arguments, as given
	Started time.Time `json:"started"`           // RFC 3339
	Host    Host      `json:"host"`              // the machine it ran on
	Devices []Device  `json:"devices"`           // those that took part

	Processes int `json:"processes,omitempty"` // that measured together, where they were several; of a run see Run.Processes

	Networks []Network `json:"networks,omitempty"` // of messages between processes

	Resumed []time.Time `json:"resumed,omitempty"` // when it was continued, after it had been interrupted

	Settings    any    `json:"settings,omitempty"`    // the whole config as resolved, or what a bench was told; whatever JSON can hold
	Interrupted bool   `json:"interrupted,omitempty"` // somebody stopped it before its end
	Failure     string `json:"failure,omitempty"`     // what ended it

	Run  *Run  `json:"run,omitempty"` // of a record of KindRun
	Rows []Row `json:"rows"`
}

// A Network is what carried messages between processes of one host, or between hosts.
type Network struct {
	Between string        `json:"between"`         // "processes" of one host, or "hosts"
	Name    string        `json:"name"`            // as exchange.network: mpi, mpi-device or nccl
	Carrier string        `json:"carrier"`         // the library, in its own words, and of NCCL over what
	Times   []NetworkTime `json:"times,omitempty"` // of messages, as far as they were measured when the network was chosen
}

// A NetworkTime is what a message takes from one device to another, from its first call on the host to its arrival.
type NetworkTime struct {
	Bytes        int64   `json:"bytes"`
	Microseconds float64 `json:"microseconds"`
}

// A Program names the halox that ran.
type Program struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// A Device is one that took part.
type Device struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Backend     string  `json:"backend"`                // cuda or host
	MemoryBytes int64   `json:"memory_bytes,omitempty"` // absent where unknown
	Host        string  `json:"host,omitempty"`         // that it is in, where several processes shared the grid
	Process     int     `json:"process,omitempty"`      // the rank of the process that had it
	PCIBusID    string  `json:"pci_bus_id,omitempty"`   // absent for host devices
	Clocks      *Clocks `json:"clocks,omitempty"`       // absent where unknown
	Links       []Link  `json:"links,omitempty"`
}

// Clocks are the highest that a device runs at, in MHz.
type Clocks struct {
	Cores  int `json:"cores_mhz"`
	Memory int `json:"memory_mhz"`
}

// A Link says how one device reaches another.
type Link struct {
	To         int    `json:"to"`             // id of the other device, of the same process
	Kind       string `json:"kind"`           // what joins the two
	PeerAccess bool   `json:"peer_access"`    // whether one can address the other's memory
	Path       string `json:"path,omitempty"` // how messages between the two travel
}

// Add appends a row.
func (r *Record) Add(rows ...Row) { r.Rows = append(r.Rows, rows...) }

// End says what ended the measurements, where that is an error.
func (r *Record) End(failure error) {
	if failure != nil {
		r.Failure = failure.Error()
	}
}

// State says what came between a record and its end, "" for nothing.
func (r *Record) State() string {
	switch {
	case r.Failure != "":
		return "failed: " + r.Failure
	case r.Interrupted:
		return "interrupted"
	}
	return ""
}

// String names the program, "" where it is not known.
func (p Program) String() string {
	if p.Version == "" {
		return ""
	}
	return wording.Join(" ", "halox", p.Version, p.ShortCommit())
}

// ShortCommit cuts the commit as git does.
func (p Program) ShortCommit() string {
	if len(p.Commit) == 40 {
		return p.Commit[:7]
	}
	return p.Commit
}
