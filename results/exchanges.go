package results

import (
	"encoding/json"
	"fmt"
	"time"
)

// Exchanges is the record of a bench of halo exchanges: how long they take for
// fields of some sizes over some paths.
type Exchanges struct {
	Schema  int        `json:"schema"`
	Halox   Program    `json:"halox"`
	Host    Host       `json:"host"`
	Started time.Time  `json:"started"`
	Devices []Device   `json:"devices"`
	Rows    []Exchange `json:"rows"`
}

// Exchange is one line of it. Times are in microseconds, each the median of
// batches of exchanges queued one after the other, by one host thread or by one a
// device; rates count what a device sends.
type Exchange struct {
	Points        int     `json:"points"` // a device, along each axis
	Radius        int     `json:"radius"`
	Fields        int     `json:"fields"` // of float64
	Path          string  `json:"path"`
	Messages      int     `json:"messages"`      // in all
	MessageBytes  int64   `json:"message_bytes"` // the largest
	DeviceBytes   int64   `json:"device_bytes"`  // what the busiest device sends to others
	OneThread     float64 `json:"one_thread_us"` // an exchange
	ManyThreads   float64 `json:"threads_us,omitempty"`
	CopyUS        float64 `json:"copy_us"`         // a plain peer copy of the largest message
	LinkGBs       float64 `json:"copy_gb_s"`       // the rate of that copy
	RateGBs       float64 `json:"rate_gb_s"`       // of the exchange, out of the busiest device
	ShareOfCopies float64 `json:"share_of_copies"` // time of plain copies of all messages of a device, one after the other, over the exchange's
}

// Write writes the record as indented JSON, whole or not at all.
func (e *Exchanges) Write(path string) error {
	stamped := *e
	stamped.Schema = Schema
	data, err := json.MarshalIndent(&stamped, "", "  ")
	if err == nil {
		err = writeAtomic(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("results: write record %s: %w", path, err)
	}
	return nil
}
