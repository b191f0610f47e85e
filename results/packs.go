package results

// Packs is the record of a bench of packing: what each engine takes for some
// layouts on one device.
type Packs struct {
	Bench
	Device Device `json:"device"`
	To     string `json:"to"` // where the packed bytes lie: device or pinned
	Rows   []Pack `json:"rows"`
}

// The directions of a Pack.
const (
	Packed   = "pack"
	Unpacked = "unpack"
)

// AutoEngine is the engine that takes the one it found the fastest, and
// CopiesEngine that of the driver's own copies.
const (
	AutoEngine   = "auto"
	CopiesEngine = "copies"
)

// Pack is one line of it: one engine that packs, or unpacks, one layout. Times
// are of the device.
type Pack struct {
	Layout
	Direction string `json:"direction"` // pack or unpack
	Pieces    int64  `json:"pieces"`    // contiguous ones that the layout has
	Engine    string `json:"engine"`
	Variant   string `json:"variant,omitempty"` // how the engine was told to work, where it was told
	Took      string `json:"took,omitempty"`    // the engine that auto took
	Why       string `json:"why,omitempty"`     // what auto had measured before
	Checked   bool   `json:"checked"`           // whether all bytes were compared with what the host packs
	Cost
}

// Contender returns the engine, with its variant where it has one.
func (p Pack) Contender() string {
	if p.Variant == "" {
		return p.Engine
	}
	return p.Engine + ", " + p.Variant
}

func (p Pack) rival() bool { return p.Engine != AutoEngine }

// Write writes the record as indented JSON, whole or not at all.
func (p *Packs) Write(path string) error {
	stamped := *p
	stamped.Schema = Schema
	return writeRecord(path, &stamped)
}

// A PackGroup is what was measured of one workload in one direction.
type PackGroup = Group[Pack]

// Groups returns the rows by workload and direction, in their order. The rows of
// a group follow each other.
func (p *Packs) Groups() []PackGroup {
	return groups(p.Rows, func(a, b Pack) bool { return a.Workload() == b.Workload() && a.Direction == b.Direction })
}
