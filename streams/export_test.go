package streams

import "time"

// SetGrace sets how long Close of a device waits for its streams.
func (d *Device) SetGrace(limit time.Duration) { d.grace = limit }
