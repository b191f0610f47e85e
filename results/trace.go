package results

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/internal/files"
)

// A Trace is the timeline of a run: what the streams of each device did, and when, in a
// few of its steps.
type Trace struct {
	About   TraceAbout
	Devices []TraceDevice // no two of one name
}

// TraceAbout says what was traced.
type TraceAbout struct {
	Halox     Program `json:"halox"`
	Solver    string  `json:"solver,omitempty"`
	Size      []int   `json:"size,omitempty"` // of the grid, along x, y, z
	Precision string  `json:"precision,omitempty"`
	Scheme    string  `json:"scheme,omitempty"`
	Order     string  `json:"order,omitempty"`
	Path      string  `json:"path,omitempty"`
	Lost      int     `json:"lost,omitempty"`    // operations that are missing
	Failure   string  `json:"failure,omitempty"` // why there is no more
}

// A TraceDevice is what one device did.
type TraceDevice struct {
	Name    string        // "GPU 0, NVIDIA H200"
	Within  time.Duration // its times may be off those of other devices by so much, either way
	Streams []TraceStream
}

// A TraceStream is what one stream did: operations in order that do not overlap.
type TraceStream struct {
	Name       string
	Operations []TraceOperation
}

// A TraceOperation is one thing that a stream did.
type TraceOperation struct {
	Name       string
	Category   string // one of TraceCategories
	Begin, End time.Duration
	Step       int64
	Bytes      int64  // of a copy
	With       string // the device at the other end, or that was waited for
}

// TraceCategories are the kinds of operations. Pack, unpack, copy and exchange are
// communication.
var TraceCategories = []string{traceSweep, tracePack, traceUnpack, traceCopy, traceExchange, traceOther, traceWait}

const (
	traceSweep    = "sweep"
	tracePack     = "pack"
	traceUnpack   = "unpack"
	traceCopy     = "copy"
	traceExchange = "exchange"
	traceOther    = "other"
	traceWait     = "wait"
)

// ErrNotTrace is the error of a file that is no trace of halox's.
var ErrNotTrace = errors.New("not a trace of halox")

// traceFormat marks a file as such a trace; traceSchema is the version of its layout.
const (
	traceFormat = "halox trace"
	traceSchema = 1
)

// traceFile is a trace in the Trace Event Format, which Perfetto and chrome://tracing
// read.
type traceFile struct {
	TraceEvents     []traceEvent `json:"traceEvents"`
	DisplayTimeUnit string       `json:"displayTimeUnit"`
	OtherData       traceData    `json:"otherData"`
}

// traceData is what viewers show as metadata.
type traceData struct {
	Format string `json:"format"`
	Schema int    `json:"schema"`
	TraceAbout
	HiddenShare     *float64         `json:"hidden_share,omitempty"` // absent where nothing was communicated
	HiddenUS        traceTime        `json:"hidden_us"`
	CommunicationUS traceTime        `json:"communication_us"`
	Alignment       []traceAlignment `json:"alignment"`
	Notes           []string         `json:"notes"`
}

// traceAlignment says how exactly the times of a device fit those of others.
type traceAlignment struct {
	Device   string    `json:"device"`
	WithinUS traceTime `json:"within_us"`
}

// traceNotes say how to read the file.
var traceNotes = []string{
	"an operation begins when the one before it on its stream ended or, on an idle stream, when the host queued it",
	"times of different devices compare as exactly as alignment says, in either direction",
	"hidden_share is the part of the time of pack, unpack, copy and exchange in which the same device sweeps, over all devices",
	"the events that tell the times take some time themselves: a traced step is slower than another",
}

// traceEvent is one event of the format: a complete one ("X") or a name ("M").
type traceEvent struct {
	Name     string     `json:"name"`
	Category string     `json:"cat,omitempty"`
	Phase    string     `json:"ph"`
	TS       traceTime  `json:"ts"`
	Duration *traceTime `json:"dur,omitempty"`
	Process  int        `json:"pid"`
	Thread   int        `json:"tid"`
	Args     traceArgs  `json:"args"`
}

type traceArgs struct {
	Name  string `json:"name,omitempty"` // of a device or a stream
	Index *int   `json:"sort_index,omitempty"`
	Step  int64  `json:"step,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	With  string `json:"with,omitempty"`
}

// traceTime is a time that JSON has in microseconds, exact to the nanosecond.
type traceTime time.Duration

// MarshalJSON implements json.Marshaler.
func (m traceTime) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", m/1000, m%1000), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *traceTime) UnmarshalJSON(text []byte) error {
	var us float64
	if err := json.Unmarshal(text, &us); err != nil {
		return err
	}
	if !(us >= 0 && us < 1e15) {
		return fmt.Errorf("a time of %v us", us)
	}
	*m = traceTime(us*1000 + 0.5)
	return nil
}

// Write puts the trace into the file at path, as JSON that Perfetto reads.
func (t *Trace) Write(path string) error {
	err := t.check()
	if err == nil {
		var data []byte
		if data, err = json.Marshal(t.file()); err == nil {
			err = files.Write(path, append(data, '\n'))
		}
	}
	if err != nil {
		return fmt.Errorf("results: write trace %s: %w", path, err)
	}
	return nil
}

// Traced reports whether there is any operation.
func (t *Trace) Traced() bool {
	return slices.ContainsFunc(t.Devices, func(d TraceDevice) bool { return len(d.Streams) > 0 })
}

// check refuses operations that do not come one after another.
func (t *Trace) check() error {
	for _, d := range t.Devices {
		for _, s := range d.Streams {
			last := time.Duration(0)
			for _, o := range s.Operations {
				if o.Begin < last || o.End < o.Begin {
					return fmt.Errorf("%s, %s: %s from %v to %v after what ended at %v", d.Name, s.Name, o.Name, o.Begin, o.End, last)
				}
				if !slices.Contains(TraceCategories, o.Category) {
					return fmt.Errorf("%s, %s: %s is of category %q", d.Name, s.Name, o.Name, o.Category)
				}
				last = o.End
			}
		}
	}
	return nil
}

// file returns the trace as the format has it, with names first and operations in the
// order of their times.
func (t *Trace) file() *traceFile {
	hidden, communication := t.Hidden()
	f := &traceFile{DisplayTimeUnit: "ns", OtherData: traceData{
		Format: traceFormat, Schema: traceSchema, TraceAbout: t.About,
		HiddenUS: traceTime(hidden), CommunicationUS: traceTime(communication), Notes: traceNotes,
	}}
	if communication > 0 {
		f.OtherData.HiddenShare = Number(hidden.Seconds() / communication.Seconds())
	}
	thread := 0
	for i, d := range t.Devices {
		f.OtherData.Alignment = append(f.OtherData.Alignment, traceAlignment{d.Name, traceTime(d.Within)})
		process := i + 1 // Perfetto takes process 0 for the idle one
		f.name("process", process, thread+1, d.Name, i)
		for k, s := range d.Streams {
			thread++ // no two alike: some viewers look at this number alone
			f.name("thread", process, thread, s.Name, k)
			for _, o := range s.Operations {
				took := traceTime(o.End - o.Begin)
				f.TraceEvents = append(f.TraceEvents, traceEvent{
					Name: o.Name, Category: o.Category, Phase: "X", TS: traceTime(o.Begin), Duration: &took,
					Process: process, Thread: thread, Args: traceArgs{Step: o.Step, Bytes: o.Bytes, With: o.With},
				})
			}
		}
	}
	slices.SortStableFunc(f.TraceEvents, func(a, b traceEvent) int {
		return cmp.Or(strings.Compare(a.Phase, b.Phase), cmp.Compare(a.TS, b.TS))
	})
	return f
}

// name adds the two events that name a device ("process") or a stream ("thread") and
// say where among the others it stands.
func (f *traceFile) name(kind string, process, thread int, name string, place int) {
	for _, e := range []traceEvent{
		{Name: kind + "_name", Args: traceArgs{Name: name}},
		{Name: kind + "_sort_index", Args: traceArgs{Index: &place}},
	} {
		e.Phase, e.Process, e.Thread = "M", process, thread
		f.TraceEvents = append(f.TraceEvents, e)
	}
}

// ReadTrace gives back the trace in the file at path. Of a file that holds something
// else the error is [ErrNotTrace]; one of more than 1 GiB, a device and a pipe are errors
// too.
func ReadTrace(path string) (*Trace, error) {
	data, err := files.Read(path, mostTrace)
	if err != nil {
		return nil, fmt.Errorf("results: read trace: %w", err)
	}
	t, err := decodeTrace(data)
	if err != nil {
		return nil, fmt.Errorf("results: read trace %s: %w", path, err)
	}
	return t, nil
}

// mostTrace is how many bytes of a trace are read.
const mostTrace = 1 << 30

// decodeTrace looks at the metadata first: the rest of another file may not fit.
func decodeTrace(data []byte) (*Trace, error) {
	var head struct {
		OtherData struct {
			Format string
			Schema int
		}
	}
	if err := json.Unmarshal(data, &head); err != nil || head.OtherData.Format != traceFormat {
		return nil, ErrNotTrace
	}
	if n := head.OtherData.Schema; n != traceSchema {
		return nil, fmt.Errorf("its schema version is %d; this halox reads %d", n, traceSchema)
	}
	var f traceFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	t := &Trace{About: f.OtherData.TraceAbout}
	if err := t.add(&f); err != nil {
		return nil, err
	}
	return t, t.check()
}

// add gives the trace the devices of a file, their streams and what these did.
func (t *Trace) add(f *traceFile) error {
	for _, a := range f.OtherData.Alignment {
		t.Devices = append(t.Devices, TraceDevice{Name: a.Device, Within: time.Duration(a.WithinUS)})
	}
	threads := map[int]int{} // the place of a stream among those of its device
	for _, e := range f.TraceEvents {
		if e.Process < 1 || e.Process > len(t.Devices) {
			return fmt.Errorf("%s is of device %d of %d", e.Name, e.Process, len(t.Devices))
		}
		d := &t.Devices[e.Process-1]
		k, known := threads[e.Thread]
		switch {
		case e.Phase == "M" && e.Name == "thread_name":
			threads[e.Thread] = len(d.Streams)
			d.Streams = append(d.Streams, TraceStream{Name: e.Args.Name})
		case e.Phase == "X" && known && k < len(d.Streams) && e.Duration != nil:
			s := &d.Streams[k]
			s.Operations = append(s.Operations, TraceOperation{
				Name: e.Name, Category: e.Category, Begin: time.Duration(e.TS), End: time.Duration(e.TS + *e.Duration),
				Step: e.Args.Step, Bytes: e.Args.Bytes, With: e.Args.With,
			})
		case e.Phase == "X":
			return fmt.Errorf("%s is of a stream without a name, or has no end", e.Name)
		}
	}
	return nil
}
