package p2p

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/halox/halox/streams"
)

// CorruptsData is the part of a message by which a record of measurements tells a Fault from a path that is not there.
const CorruptsData = "corrupts data: "

// Fault is a link over which data did not arrive as sent.
type Fault struct {
	From, To *streams.Device
	Offset   int64 // of the first wrong byte
	Wrong    int64 // bytes
	Of       int64 // bytes sent
}

// Error names the link.
func (f *Fault) Error() string {
	return fmt.Sprintf(
		"the link from device %v to %v %sof %d bytes sent, %d arrived wrong, the first at %d",
		f.From, f.To, CorruptsData, f.Of, f.Wrong, f.Offset)
}

const (
	probeBytes = 1 << 20
	probeLimit = 20 * time.Second
)

// Probe sends 1 MiB from one device to another by a peer copy and compares
// what arrived. The receiving memory holds zeros before. The error names the
// link, and is a *Fault if the data is wrong.
func Probe(from, to *streams.Device) error {
	var open streams.Resources
	defer open.Close()
	p := probe{
		src: open.Alloc(from, probeBytes), dst: open.Alloc(to, probeBytes),
		in: open.AllocPinned(from, probeBytes), out: open.AllocPinned(to, probeBytes),
		here: open.NewStream(from, streams.Normal), there: open.NewStream(to, streams.Normal),
	}
	err := open.Err()
	if err == nil {
		err = p.send(from, to)
	}
	if err != nil {
		return fmt.Errorf("p2p: probe the link from device %v to %v: %w", from, to, err)
	}
	return Compare(from, to, p.in.Bytes(), p.out.Bytes())
}

// send fills in, and carries it to out over the link.
func (p *probe) send(from, to *streams.Device) error {
	sent, got := p.in.Bytes(), p.out.Bytes()
	rand.NewChaCha8([32]byte{byte(from.ID), byte(to.ID)}).Read(sent) // differs by link
	clear(got)
	steps := []struct {
		on       *streams.Stream
		dst, src *streams.Memory
	}{
		{p.there, p.dst, p.out}, {p.here, p.src, p.in}, {p.here, p.dst, p.src}, {p.there, p.out, p.dst},
	}
	for _, s := range steps {
		if err := s.on.Copy(s.dst.All(), s.src.All()); err != nil {
			return err
		}
		if err := s.on.Sync(probeLimit); err != nil {
			return err
		}
	}
	return nil
}

// probe is what one Probe needs for its time.
type probe struct {
	src, dst, in, out *streams.Memory
	here, there       *streams.Stream
}

// Compare returns a *Fault if what arrived is not what one device sent to another. Both are
// of one length.
func Compare(from, to *streams.Device, sent, got []byte) error {
	if bytes.Equal(sent, got) {
		return nil
	}
	f := &Fault{From: from, To: to, Of: int64(len(sent))}
	for i := range sent {
		if sent[i] == got[i] {
			continue
		}
		if f.Wrong == 0 {
			f.Offset = int64(i)
		}
		f.Wrong++
	}
	return f
}
