package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// Schema is the version of the record's layout that this package writes. It
// grows when a key changes its meaning, not when one is added.
const Schema = 1

// A Record is what one run leaves behind. Numbers that don't apply, were never
// reached or are not finite are nil here and absent in the file; see [Number].
type Record struct {
	Schema  int       `json:"schema"`  // set by Write
	Halox   Program   `json:"halox"`   // the program that ran
	Config  any       `json:"config"`  // the whole config as resolved; whatever JSON can hold
	Host    Host      `json:"host"`    // the machine it ran on
	Started time.Time `json:"started"` // RFC 3339

	Devices       []Device    `json:"devices"`
	Scheme        string      `json:"scheme,omitempty"`
	Order         string      `json:"order,omitempty"` // of the exchange: left-right or pairwise, for two-stream
	Path          string      `json:"path,omitempty"`
	Decomposition [3]int      `json:"decomposition,omitzero"` // devices along x, y, z
	Subdomains    []Subdomain `json:"subdomains,omitempty"`

	Iterations int         `json:"iterations"`        // steps done
	Stopped    Stop        `json:"stopped"`           // why the run ended
	Failure    string      `json:"failure,omitempty"` // what went wrong, when stopped is error
	Norms                  // of the last step
	Error      *ErrorNorms `json:"error,omitempty"` // against the exact solution, where one is given

	Sweep            *Sweep   `json:"sweep,omitempty"` // on GPUs
	SetupSeconds     *float64 `json:"setup_seconds,omitempty"`
	LoopSeconds      *float64 `json:"loop_seconds,omitempty"`
	UpdatesPerSecond *float64 `json:"updates_per_second,omitempty"` // owned points times steps, a second of the loop
	BytesExchanged   int64    `json:"bytes_exchanged"`              // sent by all devices in all steps

	Time *float64 `json:"time,omitempty"` // simulated time reached; none for laplace
	DT   *float64 `json:"dt,omitempty"`   // time step; none for laplace

	History []Check `json:"history,omitempty"` // norms at every check, when asked for
}

// A Program names the halox that ran.
type Program struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// A Device is one that took part in the run.
type Device struct {
	ID          int    `json:"id"`
	Name        string `json:"name"`
	Backend     string `json:"backend"`                // cuda or host
	MemoryBytes int64  `json:"memory_bytes,omitempty"` // absent where unknown
	PCIBusID    string `json:"pci_bus_id,omitempty"`   // absent for host devices
	Links       []Link `json:"links,omitempty"`
}

// A Link says how one device reaches another.
type Link struct {
	To         int    `json:"to"`             // id of the other device
	Kind       string `json:"kind"`           // what joins the two
	PeerAccess bool   `json:"peer_access"`    // whether one can address the other's memory
	Path       string `json:"path,omitempty"` // how messages between the two travel
}

// A Subdomain is the box of owned points [Lo, Hi) that one device has, in
// global 0-based indices along x, y, z.
type Subdomain struct {
	Device int    `json:"device"` // id of the device
	Lo     [3]int `json:"lo"`
	Hi     [3]int `json:"hi"`
}

// Sweep is how the first GPU swept the most of its subdomain.
type Sweep struct {
	Block  [2]int `json:"block"`  // threads of a block along x and y
	Layers int    `json:"layers"` // that a thread takes: planes, or rows in two dimensions
	// What finding that out took on all GPUs; about 0 where it was known.
	TuningSeconds *float64 `json:"tuning_seconds,omitempty"`
}

// A Stop is the reason for which a run ended.
type Stop string

// The reasons that a record knows.
const (
	StopTolerance   Stop = "tolerance"   // the change fell below the tolerance
	StopIterations  Stop = "iterations"  // all steps asked for were done
	StopInterrupted Stop = "interrupted" // somebody ended it between two steps
	StopError       Stop = "error"       // it failed; Record.Failure says how
)

// Norms sum up the field after a step and the change that the step made, over
// the owned points.
type Norms struct {
	MaxChange *float64 `json:"max_change,omitempty"` // largest absolute change
	L2Change  *float64 `json:"l2_change,omitempty"`  // root of the sum of squares of the change
	L2Norm    *float64 `json:"l2_norm,omitempty"`    // root of the mean of squares of the field
	MaxNorm   *float64 `json:"max_norm,omitempty"`   // largest absolute value of the field
}

// ErrorNorms measure the distance from the exact solution.
type ErrorNorms struct {
	L2  *float64 `json:"l2,omitempty"`  // root of h^d times the sum of squares
	Max *float64 `json:"max,omitempty"` // largest absolute distance
}

// A Check is one line of the history: the norms after so many steps.
type Check struct {
	Iteration int `json:"iteration"`
	Norms
}

// Number makes v fit for a record: nil where v is NaN or infinite, which JSON
// cannot hold, and a pointer to v else. Zero is a number like any other.
func Number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Write puts the record into the file at path as indented JSON. Floats are
// written with the fewest digits that give the same float64 back.
func (r *Record) Write(path string) error {
	stamped := *r
	stamped.Schema = Schema
	data, err := json.MarshalIndent(&stamped, "", "  ")
	if err == nil {
		err = writeAtomic(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("results: write record %s: %w", path, err)
	}
	return nil
}

// Read gives back the record in the file at path. Its Config is made of maps,
// slices and [json.Number], so that no digit is lost. A file that has no schema
// version, or a newer one than [Schema], is an error.
func Read(path string) (*Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("results: read record: %w", err)
	}
	record, err := decodeRecord(data)
	if err != nil {
		return nil, fmt.Errorf("results: read record %s: %w", path, err)
	}
	return record, nil
}

// decodeRecord looks at the schema version before anything else, since the rest
// of a newer record may not even fit.
func decodeRecord(data []byte) (*Record, error) {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	switch {
	case head.Schema == 0:
		return nil, errors.New(`not a halox record: it has no "schema" version`)
	case head.Schema < 0 || head.Schema > Schema:
		return nil, fmt.Errorf("its schema version is %d; this halox reads up to %d", head.Schema, Schema)
	}
	record := new(Record)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return record, decoder.Decode(record)
}
