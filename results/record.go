package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/internal/files"
)

// Schema is the version of the record's layout that this package writes; the file
// record.schema.json describes it. It grows when a key changes its meaning, not when
// one is added.
const Schema = 2

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
	KindSchemes  Kind = "schemes"  // steps by scheme, path and size
	KindScaling  Kind = "scaling"  // steps over the number of devices
	KindSweep    Kind = "sweep"    // sweeps on one device, by stencil and size
)

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{KindRun, KindExchange, KindPack, KindPingPong, KindLinks, KindLatency, KindSchemes, KindScaling, KindSweep}
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

	Resumed []time.Time `json:"resumed,omitempty"` // when it was continued, after it had been interrupted

	Settings    any    `json:"settings,omitempty"`    // the whole config as resolved, or what a bench was told; whatever JSON can hold
	Interrupted bool   `json:"interrupted,omitempty"` // somebody stopped it before its end
	Failure     string `json:"failure,omitempty"`     // what ended it

	Run  *Run  `json:"run,omitempty"` // of a record of KindRun
	Rows []Row `json:"rows"`
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
	To         int    `json:"to"`             // id of the other device
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

// Write puts the record into the file at path as JSON, a row a line, whole or not at
// all. Floats are written with the fewest digits that give the same float64 back. A
// kind or a metric that this halox doesn't know is an error.
func (r *Record) Write(path string) error {
	data, err := r.encode()
	if err == nil {
		err = files.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("results: write record %s: %w", path, err)
	}
	return nil
}

func (r *Record) encode() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	stamped := *r
	stamped.Schema, stamped.Rows = Schema, []Row{}
	if stamped.Devices == nil {
		stamped.Devices = []Device{}
	}
	data, err := json.MarshalIndent(&stamped, "", "  ")
	if err != nil {
		return nil, err
	}
	const end = "[]\n}" // of the rows, which come last
	out := bytes.NewBuffer(bytes.TrimSuffix(data, []byte(end)))
	out.WriteByte('[')
	for i, row := range r.Rows {
		line, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(line)
	}
	if len(r.Rows) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("]\n}\n")
	return out.Bytes(), nil
}

// check refuses what others could not read.
func (r *Record) check() error {
	if !slices.Contains(Kinds(), r.Kind) {
		return fmt.Errorf("its kind is %q, which is none", r.Kind)
	}
	for i, row := range r.Rows {
		for _, v := range row.Values {
			if v.Unit == "" {
				return fmt.Errorf("row %d: there is no metric %q", i+1, v.Metric)
			}
		}
	}
	return nil
}

// Read gives back the record in the file at path, one of an older schema as one of
// today's. Its Settings are made of maps, slices and [json.Number], so that no digit
// is lost. A file that is no record, or of a newer schema than [Schema], is an error, and
// so is one of more than 256 MiB, a device and a pipe.
func Read(path string) (*Record, error) {
	data, err := files.Read(path, mostRecord)
	if err != nil {
		return nil, fmt.Errorf("results: read record: %w", err)
	}
	record, err := decodeRecord(data)
	if err != nil {
		return nil, fmt.Errorf("results: read record %s: %w", path, err)
	}
	return record, nil
}

// mostRecord is how many bytes of a record are read.
const mostRecord = 256 << 20

var (
	errNoRecord = errors.New(`not a halox record: it has no "schema" version`)
	errTrace    = errors.New("not a record but a trace, which halox plot draws, and Perfetto shows")
)

// decodeRecord looks at the schema version before anything else, since the rest
// of a newer record may not even fit.
func decodeRecord(data []byte) (*Record, error) {
	if !json.Valid(data) {
		return nil, badJSON(data)
	}
	var head struct {
		Schema      json.Number     `json:"schema"`
		TraceEvents json.RawMessage `json:"traceEvents"`
	}
	err := json.Unmarshal(data, &head)
	if head.TraceEvents != nil {
		return nil, errTrace
	}
	if err != nil || head.Schema == "" {
		return nil, errNoRecord
	}
	version, err := head.Schema.Int64()
	switch {
	case err != nil || version < 1:
		return nil, fmt.Errorf("not a halox record: its schema version is %s", head.Schema)
	case version > Schema:
		return nil, fmt.Errorf("its schema version is %d; this halox reads up to %d", version, Schema)
	case version == 1:
		return upgrade1(data)
	}
	record := new(Record)
	if err := decodeExactly(data, record); err != nil {
		return nil, err
	}
	if record.Kind == "" {
		return nil, errors.New(`not a halox record: it has no "kind"`)
	}
	return record, nil
}

// decodeExactly keeps the digits of what has no type.
func decodeExactly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// badJSON says what is wrong with what isn't JSON; that it was cut short, where it was.
func badJSON(data []byte) error {
	err := json.Unmarshal(data, new(any))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("it is empty")
	}
	if syntax.Offset >= int64(len(data)) {
		return fmt.Errorf("it ends in the middle, after %d bytes: %w", len(data), err)
	}
	return fmt.Errorf("no JSON, from byte %d: %w", syntax.Offset, err)
}
