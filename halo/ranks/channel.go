package ranks

// Channel is a stream of small messages from one rank to another.
type Channel struct{ number int }

// MaxMessage is the most bytes that a message of a channel may have.
const MaxMessage = 4096

// channel is what was asked for, and where it lies on GPUs.
type channel struct {
	from, to, slots, bytes int
	ring, credit           uint64 // addresses
}

// words is how many numbers of 8 bytes a slot of the ring has.
func (c channel) words() int { return (c.bytes/4 + 1) / 2 * 2 }

// ID is the number of the ranks::Channel that a kernel has.
func (c Channel) ID() int { return c.number }
