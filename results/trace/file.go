package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results/internal/wording"
)

// format marks a file as such a trace; schema is the version of its layout.
const (
	format = "halox trace"
	schema = 1
)

// file is a trace in the Trace Event Format, for Perfetto and chrome://tracing.
type file struct {
	TraceEvents     []event  `json:"traceEvents"`
	DisplayTimeUnit string   `json:"displayTimeUnit"`
	OtherData       metadata `json:"otherData"`
}

// metadata is shown as metadata by viewers.
type metadata struct {
	Format string `json:"format"`
	Schema int    `json:"schema"`
	About
	HiddenShare     *float64     `json:"hidden_share,omitempty"` // absent without communication
	HiddenUS        microseconds `json:"hidden_us"`
	CommunicationUS microseconds `json:"communication_us"`
	Alignment       []alignment  `json:"alignment"`
	Notes           []string     `json:"notes"`
}

// alignment is the accuracy of a device's times relative to those of others.
type alignment struct {
	Device   string       `json:"device"`
	WithinUS microseconds `json:"within_us"`
}

// notes explain the file.
var notes = []string{
	"an operation begins when the previous one on its stream ended or, on an idle stream, when the host queued it",
	"times of different devices are comparable to the accuracy in alignment, in either direction",
	"hidden_share is the part of the time of pack, unpack, copy and exchange in which the same device sweeps, " +
		"over all devices",
	"the timing events take time themselves: a traced step is slower than others",
}

// event is one event of the format: a complete one ("X") or a name ("M").
type event struct {
	Name     string        `json:"name"`
	Category string        `json:"cat,omitempty"`
	Phase    string        `json:"ph"`
	TS       microseconds  `json:"ts"`
	Duration *microseconds `json:"dur,omitempty"`
	Process  int           `json:"pid"`
	Thread   int           `json:"tid"`
	Args     arguments     `json:"args"`
}

type arguments struct {
	Name  string `json:"name,omitempty"` // name of a device or a stream
	Index *int   `json:"sort_index,omitempty"`
	Step  int64  `json:"step,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	With  string `json:"with,omitempty"`
}

// microseconds is a time in microseconds in JSON, exact to the nanosecond.
type microseconds time.Duration

// MarshalJSON implements json.Marshaler.
func (m microseconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", m/1000, m%1000), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *microseconds) UnmarshalJSON(text []byte) error {
	var us float64
	if err := json.Unmarshal(text, &us); err != nil {
		return err
	}
	if !(us >= 0 && us < 1e15) {
		return fmt.Errorf("a time must be finite and at most 292 years, got %v us", us)
	}
	*m = microseconds(us*1000 + 0.5)
	return nil
}

// Encode writes the trace to w, as JSON that Perfetto reads.
func (t *Trace) Encode(w io.Writer) error {
	if err := t.check(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(t.file())
}

// Write writes the trace to the file at path, see Encode.
func (t *Trace) Write(path string) error {
	var data bytes.Buffer
	err := t.Encode(&data)
	if err == nil {
		err = files.Write(path, data.Bytes())
	}
	if err != nil {
		return fmt.Errorf("results: write trace %s: %w", path, err)
	}
	return nil
}

// file returns the trace in the format, with names first and operations sorted by time.
func (t *Trace) file() *file {
	hidden, communication := t.Hidden()
	f := &file{DisplayTimeUnit: "ns", OtherData: metadata{
		Format: format, Schema: schema, About: t.About,
		HiddenUS: microseconds(hidden), CommunicationUS: microseconds(communication), Notes: notes,
	}}
	if communication > 0 {
		share := hidden.Seconds() / communication.Seconds()
		f.OtherData.HiddenShare = &share
	}
	thread := 0
	for i, d := range t.Devices {
		f.OtherData.Alignment = append(f.OtherData.Alignment, alignment{d.Name, microseconds(d.ClockError)})
		process := i + 1 // Perfetto treats process 0 as idle
		f.name("process", process, thread+1, d.Name, i)
		for k, s := range d.Streams {
			thread++ // unique: some viewers use only this number
			f.name("thread", process, thread, s.Name, k)
			for _, o := range s.Operations {
				took := microseconds(o.End - o.Begin)
				f.TraceEvents = append(f.TraceEvents, event{
					Name: o.Name, Category: o.Category, Phase: "X", TS: microseconds(o.Begin), Duration: &took,
					Process: process, Thread: thread, Args: arguments{Step: o.Step, Bytes: o.Bytes, With: o.With},
				})
			}
		}
	}
	slices.SortStableFunc(f.TraceEvents, func(a, b event) int {
		return cmp.Or(strings.Compare(a.Phase, b.Phase), cmp.Compare(a.TS, b.TS))
	})
	return f
}

// name adds the two events that name a device ("process") or a stream ("thread") and set its order.
func (f *file) name(kind string, process, thread int, name string, place int) {
	for _, e := range []event{
		{Name: kind + "_name", Args: arguments{Name: name}},
		{Name: kind + "_sort_index", Args: arguments{Index: &place}},
	} {
		e.Phase, e.Process, e.Thread = "M", process, thread
		f.TraceEvents = append(f.TraceEvents, e)
	}
}

// Read returns the trace in the file at path, with question marks for characters that cannot be displayed.
// For other files the error is [errNotTrace]; a file of more than 1 GiB, a device and a pipe are errors too.
func Read(path string) (*Trace, error) {
	data, err := files.Read(path, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("results: read trace: %w", err)
	}
	t, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("results: read trace %s: %s", path, wording.Short(err.Error()))
	}
	return t, nil
}

// maxBytes is the maximum size of a trace in bytes.
const maxBytes = 1 << 30

// decode reads the metadata first: the rest of another file may not fit.
func decode(data []byte) (*Trace, error) {
	var head struct {
		OtherData struct {
			Format string
			Schema int
		}
	}
	if !json.Valid(data) {
		return nil, errNotTrace
	}
	data = wording.PrintableJSON(data)
	if err := json.Unmarshal(data, &head); err != nil || head.OtherData.Format != format {
		return nil, errNotTrace
	}
	if n := head.OtherData.Schema; n != schema {
		return nil, fmt.Errorf("the schema version must be %d, got %d", schema, n)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	t := &Trace{About: f.OtherData.About}
	err := t.add(&f)
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// add adds the devices of a file, their streams and operations.
func (t *Trace) add(f *file) error {
	for _, a := range f.OtherData.Alignment {
		t.Devices = append(t.Devices, Device{Name: a.Device, ClockError: time.Duration(a.WithinUS)})
	}
	threads := map[int]int{} // index of a stream in its device
	for _, e := range f.TraceEvents {
		if e.Process < 1 || e.Process > len(t.Devices) {
			return fmt.Errorf("%s is on device %d, must be at most %d", e.Name, e.Process, len(t.Devices))
		}
		d := &t.Devices[e.Process-1]
		k, known := threads[e.Thread]
		switch {
		case e.Phase == "M" && e.Name == "thread_name":
			threads[e.Thread] = len(d.Streams)
			d.Streams = append(d.Streams, Stream{Name: e.Args.Name})
		case e.Phase == "X" && known && k < len(d.Streams) && e.Duration != nil:
			s := &d.Streams[k]
			s.Operations = append(s.Operations, Operation{
				Name: e.Name, Category: e.Category, Begin: time.Duration(e.TS), End: time.Duration(e.TS + *e.Duration),
				Step: e.Args.Step, Bytes: e.Args.Bytes, With: e.Args.With,
			})
		case e.Phase == "X":
			return fmt.Errorf("%s is on a stream without a name, or has no end", e.Name)
		}
	}
	return nil
}

// Begun reports whether the file at path has a JSON object with the events of a trace, in any order of its
// keys. It reads no further than these.
func Begun(path string) bool {
	file, err := files.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	text := bufio.NewReader(file)
	if mark, _ := text.Peek(3); string(mark) == "\ufeff" {
		_, _ = text.Discard(3)
	}
	d := json.NewDecoder(text)
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return false
	}
	for d.More() {
		var value json.RawMessage
		if key, err := d.Token(); err != nil || key == "traceEvents" {
			return err == nil
		} else if d.Decode(&value) != nil {
			return false
		}
	}
	return false
}

// errNotTrace is the error for files that are not halox traces.
var errNotTrace = errors.New("not a halox trace")
