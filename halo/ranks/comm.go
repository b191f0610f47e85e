package ranks

// Comm is a communicator: some ranks, each with an index there.
type Comm int

// The communicators: all ranks, and those of one device.
const (
	All Comm = iota
	Device
)

// String names the ranks.
func (c Comm) String() string {
	if c == Device {
		return "the ranks of its device"
	}
	return "all ranks"
}
