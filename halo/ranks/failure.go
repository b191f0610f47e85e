package ranks

import (
	"errors"
	"fmt"
	"time"
)

// reason is enum Failure of ranks.cuh.
type reason int

const (
	noNotifications reason = 1 + iota
	noBarrier
	badRank
	badTag
	badWindow
	badRange
	badSource
	noPacket
	noMatch
	logFull
	queueFull
	noCollective
	badCollective
	noRoom
	noMessage
	badChannel
	badMessage
	noProxy
	badCount
	badPacket
	badBox
	byProgram
	ended
	badResult // from here on only for CPU devices
	badComm
)

// failure is why a rank has failed.
type failure struct {
	why                    reason
	rank                   int // rank of the world
	expected, came, detail int64
	where                  int64 // slot of a window and, from bit 32, rank of the world
	err                    error // error of a rank on a CPU device, or the meaning of a code of the program
}

// Errors that a run may return. The message names the rank that failed, and the reason.
var (
	ErrTimeout  = errors.New("a wait timed out")
	ErrArgument = errors.New("a call of a rank has a wrong argument")
	ErrNoRoom   = errors.New("ranks that wait for each other do not fit on the device at once") // returned by New
)

// CodeError is the error of a run that a rank has ended by Fail.
type CodeError struct {
	Rank         int    // rank of the world
	Device       string // name of its device
	Code, Detail int64  // arguments of Rank.Fail
	Means        error  `json:"-"` // entry of the code in Program.Errors, or nil; also wrapped
}

// Error names the rank that failed, and the meaning of its code.
func (e *CodeError) Error() string {
	text := fmt.Sprintf("ranks: rank %d (%s) failed with code %d", e.Rank, e.Device, e.Code)
	if e.Detail != 0 {
		text += fmt.Sprintf(", detail %d", e.Detail)
	}
	if e.Means != nil {
		text += fmt.Sprintf(": %v", e.Means)
	}
	return text
}

// Unwrap returns the meaning of the code, nil if the program does not define it.
func (e *CodeError) Unwrap() error { return e.Means }

// describe returns the error of a rank on a device with the given name.
func (f failure) describe(device string, limit time.Duration) error {
	who := fmt.Sprintf("ranks: rank %d (%s)", f.rank, device)
	if f.why == byProgram {
		return &CodeError{f.rank, device, f.expected, f.detail, f.err}
	}
	if f.err != nil {
		return fmt.Errorf("%s failed: %w", who, f.err)
	}
	if f.timedOut() {
		return fmt.Errorf("%s waited %v %s: %w", who, limit, f.text(), ErrTimeout)
	}
	return fmt.Errorf("%s %s: %w", who, f.text(), ErrArgument)
}

// timedOut reports whether a wait has timed out; other failures are wrong arguments of calls.
func (f failure) timedOut() bool {
	switch f.why {
	case noNotifications, noBarrier, noPacket, noMatch, logFull, queueFull, noCollective, noRoom, noMessage, noProxy:
		return true
	}
	return false
}

// texts describe failures: formats of expected, came and detail.
var texts = map[reason]string{
	noPacket:   "for a packet with number %[1]d; its bytes from %[3]d on have number %[2]d",
	queueFull:  "to notify rank %[2]d of tag %[3]d, which has %[1]d unread notifications of this device",
	noRoom:     "for rank %[2]d to read one of %[1]d messages of channel %[3]d",
	noProxy:    "for the proxy of device %[2]d, which has up to %[1]d commands",
	noMessage:  "for message %[1]d of channel %[3]d, of rank %[2]d",
	badMessage: "sent %[2]d bytes over channel %[3]d, must be a multiple of 4 between 0 and %[1]d",
	badResult:  "passed memory for %[2]d values, must hold %[1]d",
	badRank:    "named rank %[2]d, must be less than %[1]d",
	badWindow:  "used window %[2]d, which does not exist",
	badSource:  "put a box that exceeds its source of %[1]d bytes",
	badComm:    "named communicator %[2]d, which does not exist",
}

// text describes what a rank waited for, or which argument of a call was wrong.
func (f failure) text() string {
	switch f.why {
	case noNotifications:
		return fmt.Sprintf("for %d notifications of %s; %d arrived", f.expected, tags(f.detail), f.came)
	case noBarrier:
		return fmt.Sprintf("at a barrier of %v", Comm(f.expected))
	case noMatch:
		came := fmt.Sprintf("%d arrived that do not match", f.came)
		if f.came == keptMost {
			came = fmt.Sprintf("it keeps %d that do not match, the maximum", f.came)
		}
		return fmt.Sprintf("for %d notifications of %s; %s", f.expected, match(f.detail), came)
	case logFull:
		return "for the host to read the log"
	case noCollective:
		call := [...]string{"a broadcast", "a reduce", "an allreduce"}[f.detail]
		return fmt.Sprintf("for rank %d in %s", f.expected, call)
	case badChannel:
		verb := [...]string{"received from", "sent over"}[f.expected]
		return fmt.Sprintf("%s channel %d, but is not that end of it", verb, f.came)
	case badCollective:
		if f.expected == f.came {
			return fmt.Sprintf("called %v", rankCall(f.expected))
		}
		return fmt.Sprintf("called %v, but another rank called %v", rankCall(f.expected), rankCall(f.came))
	case badCount:
		text := fmt.Sprintf("passed a count of %d", f.came)
		if f.expected > 0 {
			text += fmt.Sprintf(", must be at most the %d notifications that are kept", f.expected)
		}
		return text
	case badPacket:
		if f.detail < 0 {
			return fmt.Sprintf("waited for a packet of %d bytes; "+
				"bytes must be a multiple of 4, and the address a multiple of %d", f.came, f.expected)
		}
		return fmt.Sprintf("put a packet of %d bytes at offset %d; bytes must be a multiple of 4, "+
			"and the offset and the start of the window multiples of %d", f.came, f.detail, f.expected)
	case badTag:
		return fmt.Sprintf("used tag %d, must be between 0 and %d", f.came, f.expected-1)
	case badRange:
		if f.where == noWindow {
			return fmt.Sprintf("accessed %d bytes of memory with %d bytes", f.detail, f.expected)
		}
		return fmt.Sprintf("accessed %d bytes at offset %d of window %d of rank %d, which has %d bytes",
			f.detail, f.came, f.where&(1<<32-1), f.where>>32, f.expected)
	case badBox:
		return "put a box whose rows or planes overlap: their strides at the target are 0"
	}
	return fmt.Sprintf(texts[f.why], f.expected, f.came, f.detail)
}

// noWindow is failure.where of memory outside of windows.
const noWindow = -1

// tags names the tag, or the first and last of several tags: the first is in the lower half of a number,
// their count in the upper half.
func tags(detail int64) string {
	first, n := int64(int32(detail)), detail>>32
	if n <= 1 {
		return fmt.Sprintf("tag %d", first)
	}
	return fmt.Sprintf("one of the tags %d to %d", first, first+n-1)
}

// match names the source, window and tag that a rank waited for: bits 32 to 63, 16 to 31 and 0 to 15 of a
// number.
func match(detail int64) string {
	name := func(what string, v int) string {
		if v < 0 {
			return "any " + what
		}
		return fmt.Sprintf("%s %d", what, v)
	}
	text := name("tag", int(int16(detail))) + " from " + name("rank", int(int32(detail>>32)))
	if slot := int(int16(detail >> 16)); slot >= 0 {
		text += fmt.Sprintf(" in window %d", slot)
	}
	return text
}
