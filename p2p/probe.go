package p2p

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/halox/halox/streams"
)

// CorruptsData is the part of an error text that identifies a Fault, rather than a missing path, in a record of
// measurements.
const CorruptsData = "corrupts data: "

// Fault is a link that corrupted data.
type Fault struct {
	From   *streams.Device // sender
	To     *streams.Device // receiver
	Offset int64           // of the first wrong byte
	Wrong  int64           // number of wrong bytes
	Of     int64           // number of bytes sent
}

// Error names the link and the wrong bytes.
func (f *Fault) Error() string {
	return fmt.Sprintf(
		"the link from device %v to %v %sof %d bytes sent, %d arrived wrong, the first at %d",
		f.From, f.To, CorruptsData, f.Of, f.Wrong, f.Offset)
}

const (
	probeBytes = 1 << 20
	probeLimit = 20 * time.Second
)

// Probe sends 1 MiB from one device to another by a peer copy and compares the received data. The receiving memory
// is zeroed before. The error names the link, and is a *Fault if data was corrupted.
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

// send fills in, and sends it to out over the link.
func (p *probe) send(from, to *streams.Device) error {
	sent, got := p.in.Bytes(), p.out.Bytes()
	rand.NewChaCha8([32]byte{byte(from.ID), byte(to.ID)}).Read(sent) // different for each link
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

// probe holds the resources of one Probe.
type probe struct {
	src, dst, in, out *streams.Memory
	here, there       *streams.Stream
}

// Compare returns a *Fault if the received bytes differ from those sent. Both must have the same length.
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
