package halo

import (
	"errors"
	"fmt"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Exchanger holds the buffers and launches that carry out a plan for fields. All
// of it is made by NewExchanger; an exchange makes nothing.
//
// One thread may drive it with Start and Wait, for all devices. Several threads
// drive its Transfers, each its own.
type Exchanger struct {
	resources streams.Resources
	plan      *Plan
	fields    []*Field
	copiers   map[*streams.Device]*pack.BoxCopier
	packers   map[*streams.Device]*packing.Packer // where fields have types with gaps
	transfers []*Transfer                         // by message
	direct    []*pack.DirectExchange              // by rank; nil where an exchange takes more
	channels  []*channel                          // by rank, made at the first Start
	across    *across                             // nil where this process has all subdomains
	started   bool
	failed    error // of an exchange that was queued in part; nothing is queued after it
	closed    bool
}

var errNoExchanger = errors.New("halo: the exchanger is nil: see NewExchanger")

// Transfer returns the work of one message of the plan, by its index. Where there is no such
// message, Send and Receive return that as their error.
func (x *Exchanger) Transfer(message int) *Transfer {
	if x == nil {
		return &Transfer{usable: func() error { return errNoExchanger }}
	}
	if message < 0 || message >= len(x.transfers) {
		err := fmt.Errorf("halo: message %d of a plan of %d", message, len(x.transfers))
		return &Transfer{usable: func() error { return err }}
	}
	return x.transfers[message]
}

// usable returns an error if there is no exchanger, it or one of its fields is closed, or an exchange
// has failed.
func (x *Exchanger) usable() error {
	if x == nil {
		return errNoExchanger
	}
	if x.closed {
		return errors.New("halo: the exchanger is closed")
	}
	if x.failed != nil {
		return x.failed
	}
	for _, f := range x.fields {
		if err := f.Usable(); err != nil {
			return err
		}
	}
	if x.across != nil {
		return x.across.processes.Err()
	}
	return nil
}

// Err returns an error if a GPU has waited for another in vain in an exchange
// that was queued before.
func (x *Exchanger) Err() error {
	if x == nil {
		return errNoExchanger
	}
	for _, s := range x.direct {
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what the exchanger holds. Nothing queued may still use it. It is an error, and the
// exchanger stays open, between a Start and its Wait, unless the exchange has failed. Closing twice is
// no error, nor is closing nil.
func (x *Exchanger) Close() error {
	if x == nil {
		return nil
	}
	if x.started && x.usable() == nil && x.Err() == nil {
		return errors.New("halo: an exchange is under way: call Wait before Close")
	}
	x.release()
	x.closed = true
	return x.resources.Close()
}

// hold keeps the fields from being closed until Wait has been called.
func (x *Exchanger) hold() {
	x.started = true
	for _, f := range x.fields {
		f.hold(1)
	}
}

// release lets the fields go, if an exchange holds them.
func (x *Exchanger) release() {
	if !x.started {
		return
	}
	x.started = false
	for _, f := range x.fields {
		f.hold(-1)
	}
}
