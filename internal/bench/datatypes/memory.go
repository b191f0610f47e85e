package datatypes

// Where packed bytes lie.
const (
	ToDevice = "device"
	ToPinned = "pinned" // host memory mapped into the device
)
