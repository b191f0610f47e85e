package results

// Pings is the record of a bench of ping-pongs: what messages of some layouts take
// from one device to another.
type Pings struct {
	Bench
	From          Device `json:"from"`
	To            Device `json:"to"`                       // the same as From where a device sends to itself
	Link          string `json:"link,omitempty"`           // what joins the two, as NV18; absent where unknown
	FragmentBytes int64  `json:"fragment_bytes,omitempty"` // absent for what suits
	Ring          int    `json:"ring,omitempty"`           // fragments under way at once; absent for what suits
	Busy          *Busy  `json:"busy,omitempty"`           // absent where nothing else ran
	Rows          []Ping `json:"rows"`
}

// Busy is what else each of the devices was kept busy with.
type Busy struct {
	Fraction float64 `json:"fraction"` // of the thread blocks that run at once, or of the time of a host device
	Blocks   int     `json:"blocks"`   // thread blocks of a launch; 1 on host devices
	LaunchUS float64 `json:"launch_us"`
}

// Ping is one line of it: one layout by one path. Times are of one way: half of a
// round trip.
type Ping struct {
	Layout
	Path    string `json:"path"`             // direct, peer or staged
	Remote  bool   `json:"remote,omitempty"` // it was unpacked from the sender's memory
	Engine  string `json:"engine"`           // that packed and unpacked
	Checked bool   `json:"checked"`          // whether all bytes were compared, both ways, with what the host packs and unpacks
	Cost
	// Which share of its rate what else ran lost to the messages, the mean of the two
	// devices. What was measured alone is not exact: it may be below 0.
	BusyLost float64 `json:"busy_lost,omitempty"`
}

// Contender returns the path, with the engine where that is not auto.
func (p Ping) Contender() string {
	name := p.Path
	if p.Remote {
		name += ", remote"
	}
	if p.Engine != AutoEngine {
		name += ", " + p.Engine
	}
	return name
}

func (p Ping) rival() bool { return true }

// Write writes the record as indented JSON, whole or not at all.
func (p *Pings) Write(path string) error {
	stamped := *p
	stamped.Schema = Schema
	return writeRecord(path, &stamped)
}

// A PingGroup is what was measured of one workload.
type PingGroup = Group[Ping]

// Groups returns the rows by workload, in their order. The rows of a group follow
// each other.
func (p *Pings) Groups() []PingGroup {
	return groups(p.Rows, func(a, b Ping) bool { return a.Workload() == b.Workload() })
}
