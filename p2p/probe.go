package p2p

import (
	"bytes"
	"encoding/binary"
	"fmt"
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
	var p probe
	defer p.close()
	err := p.open(from, to)
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
	fillPattern(sent, uint64(from.ID)<<32|uint64(to.ID))
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

func (p *probe) open(from, to *streams.Device) (err error) {
	for _, m := range []struct {
		to   **streams.Memory
		make func(int64) (*streams.Memory, error)
	}{{&p.src, from.Alloc}, {&p.in, from.AllocPinned}, {&p.dst, to.Alloc}, {&p.out, to.AllocPinned}} {
		if *m.to, err = m.make(probeBytes); err != nil {
			return err
		}
	}
	if p.here, err = from.NewStream(streams.Normal); err != nil {
		return err
	}
	p.there, err = to.NewStream(streams.Normal)
	return err
}

func (p *probe) close() {
	for _, s := range []*streams.Stream{p.here, p.there} {
		if s != nil {
			s.Close()
		}
	}
	for _, m := range []*streams.Memory{p.src, p.dst, p.in, p.out} {
		if m != nil {
			m.Close()
		}
	}
}

// fillPattern writes numbers that repeat nowhere and differ by link
// (SplitMix64, Steele et al. 2014).
func fillPattern(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(b[i:], z^z>>31)
	}
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
