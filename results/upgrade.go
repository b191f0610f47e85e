package results

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/halox/halox/internal/measure"
)

// upgrade1 reads a record of schema 1, which was one of four by the keys that it has.
// Its medians stand alone: what was measured around them was not kept.
func upgrade1(data []byte) (*Record, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, err
	}
	has := func(key string) bool { return keys[key] != nil }
	switch {
	case has("iterations") || has("stopped"):
		return upgrade[run1](data)
	case has("from") && has("to") && has("rows"):
		return upgrade[pings1](data)
	case has("device") && has("rows"):
		return upgrade[packs1](data)
	case has("devices") && has("rows"):
		return upgrade[exchanges1](data)
	}
	return nil, errors.New("not a halox record: schema 1 had no such kind")
}

// upgrade reads a shape of schema 1.
func upgrade[Shape interface{ upgrade() *Record }](data []byte) (*Record, error) {
	var old Shape
	if err := decodeExactly(data, &old); err != nil {
		return nil, err
	}
	return old.upgrade(), nil
}

// head1 is what the records of schema 1 had in common.
type head1 struct {
	Halox       Program
	Host        Host
	Started     time.Time
	Devices     []Device
	Interrupted bool
	Failure     string
}

func (h head1) record(k Kind) *Record {
	return &Record{
		Schema: schemaVersion, Kind: k, Halox: h.Halox, Host: h.Host, Started: h.Started, Devices: h.Devices,
		Interrupted: h.Interrupted, Failure: h.Failure,
	}
}

// run1 is a run; what it says of it has the same keys today.
type run1 struct {
	head1
	Run
	Config any
}

func (o run1) upgrade() *Record {
	r := o.record(KindRun)
	r.Settings, r.Run = o.Config, &o.Run
	r.Interrupted = o.Stopped == StopInterrupted
	r.Add(r.RunRow())
	return r
}

// exchanges1 is a bench of exchanges.
type exchanges1 struct {
	head1
	Rows []struct {
		Points, Radius, Fields int
		Path                   string
		Messages               int
		MessageBytes           int64   `json:"message_bytes"`
		DeviceBytes            int64   `json:"device_bytes"`
		OneThread              float64 `json:"one_thread_us"`
		ManyThreads            float64 `json:"threads_us"`
		CopyUS                 float64 `json:"copy_us"`
		CopyGBs                float64 `json:"copy_gb_s"`
		RateGBs                float64 `json:"rate_gb_s"`
		Share                  float64 `json:"share_of_copies"`
	}
}

func (o exchanges1) upgrade() *Record {
	r := o.record(KindExchange)
	for _, old := range o.Rows {
		row := NewRow().
			Label("points", old.Points).Label("radius", old.Radius).Label("fields", old.Fields).Label("path", old.Path).
			Label("messages", old.Messages).Label("message_bytes", old.MessageBytes).Label("device_bytes", old.DeviceBytes).
			Number(Time, fastest(old.OneThread, old.ManyThreads)).Number(OneThread, old.OneThread)
		if old.ManyThreads > 0 {
			row = row.Number(Threads, old.ManyThreads)
		}
		if old.CopyUS > 0 {
			row = row.Number(CopyTime, old.CopyUS).Number(Rate, old.RateGBs).Number(CopyRate, old.CopyGBs).Number(Share, old.Share)
		}
		r.Add(row)
	}
	return r
}

func fastest(one, many float64) float64 {
	if many > 0 {
		return min(one, many)
	}
	return one
}

// bench1 is what the two benches of datatypes had in common.
type bench1 struct {
	head1
	Blocks     int     `json:"most_blocks"`
	BudgetMS   float64 `json:"budget_ms"`
	Contenders []string
}

func (b bench1) settings() map[string]any {
	return map[string]any{"budget_ms": b.BudgetMS, "contenders": b.Contenders}
}

// layout1 begins the rows of both.
type layout1 struct {
	Suite, Name, Params string
	Bytes               int64
	Checked             bool
	US                  float64
	ContiguousUS        float64 `json:"contiguous_us"`
}

func (l layout1) row() Row {
	r := LayoutRow(l.Suite, l.Name, l.Params, l.Bytes)
	r.Checked = l.Checked
	return r
}

func (l layout1) cost(r Row) Row {
	return r.Transfer(l.Bytes, measure.Exact(l.US), measure.Exact(l.ContiguousUS))
}

// packs1 is a bench of packing.
type packs1 struct {
	bench1
	Device Device
	To     string
	Rows   []struct {
		layout1
		Direction                  string
		Pieces                     int64
		Engine, Variant, Took, Why string
	}
}

func (o packs1) upgrade() *Record {
	r := o.record(KindPack)
	r.Devices, r.Settings = []Device{o.Device}, o.settings()
	for _, old := range o.Rows {
		row := old.row().Label("direction", old.Direction).Label("memory", o.To).Label("thread_blocks", positive(o.Blocks)).
			Label("pieces", old.Pieces).Label("engine", old.Engine).Label("variant", old.Variant).Label("took", old.Took)
		row.Note = old.Why
		r.Add(old.cost(row))
	}
	return r
}

// pings1 is a bench of ping-pongs.
type pings1 struct {
	bench1
	From, To      Device
	Link          string
	FragmentBytes int64 `json:"fragment_bytes"`
	Ring          int
	Busy          *struct {
		Fraction float64 `json:"fraction"`
		Blocks   int     `json:"blocks"`
		LaunchUS float64 `json:"launch_us"`
	}
	Rows []struct {
		layout1
		Path     string
		Remote   bool
		Engine   string
		BusyLost float64 `json:"busy_lost"`
	}
}

func (o pings1) upgrade() *Record {
	r := o.record(KindPingPong)
	settings := o.settings()
	r.Devices, r.Settings = []Device{o.From}, settings
	if o.To.ID != o.From.ID {
		r.Devices = append(r.Devices, o.To)
	}
	route := NewRow().
		Label("from", o.From.ID).Label("to", o.To.ID).Label("link", o.Link).Label("fragment", positive(o.FragmentBytes)).
		Label("ring", positive(o.Ring)).Label("thread_blocks", positive(o.Blocks))
	if o.Busy != nil {
		route, settings["busy"] = route.Label("busy", o.Busy.Fraction), o.Busy
	}
	for _, old := range o.Rows {
		row := old.row().Join(route).Label("path", old.Path)
		if old.Remote {
			row = row.Label("remote", "yes")
		}
		row = old.cost(row.Label("engine", old.Engine))
		if o.Busy != nil {
			row = row.Number(BusyLost, old.BusyLost)
		}
		r.Add(row)
	}
	return r
}

// positive returns the number, or nothing to be labelled where it is none.
func positive[N cmp.Ordered](n N) any {
	var zero N
	if n == zero {
		return ""
	}
	return n
}
