package streams

import (
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
)

// A dry run accepts launches, copies, events and graphs, and counts memory, but does nothing.
func TestDryRun(t *testing.T) {
	real := hostDevices(t, 2)
	dry := DryRun([]*Device{real[0], real[1], real[0]})
	if dry[0] != dry[2] || dry[0].Real() != real[0] || !dry[1].IsDry() || real[0].IsDry() || dry[1].String() != "host 1" || dry[0].Info != real[0].Info {
		t.Errorf("%v for %v", dry, real)
	}
	const huge = 1 << 40
	m := test.Must(dry[0].Alloc(huge))(t)
	host := test.Must(dry[1].AllocPinned(1 << 20))(t)
	m.Bytes()[huge-1], host.Bytes()[0] = 1, 2
	ran := false
	k := test.Must(dry[0].NewKernel(KernelSpec{Name: "k", Uses: []Span{m.All()}, Run: func() { ran = true }}))(t)
	s, other := test.Must(dry[0].NewStream(Normal))(t), test.Must(dry[1].NewStream(Normal))(t)
	e := test.Must(dry[0].NewTimedEvent())(t)
	work := func() error {
		test.Check(t, s.Launch(k), s.Copy(m.Span(0, 8), host.Span(0, 8)), s.Record(e), other.Wait(e))
		return nil
	}
	test.Check(t, work(), s.Sync(time.Minute), e.Sync(time.Minute))
	g := test.Must(Capture(s, []*Stream{other}, work))(t)
	test.Check(t, g.Launch(), s.Sync(time.Minute))
	if now := dry[0].Held(); ran || m.Bytes()[0] != 0 || now != (Held{Memory: huge}) {
		t.Errorf("ran %t, copied %d, holds %+v", ran, m.Bytes()[0], now)
	}
	if now, most := real[0].Held(), real[0].Peak(); now != (Held{}) || most != (Held{}) || real[0].driver.host().used != 0 {
		t.Errorf("real device: got %+v, peak %+v", now, most)
	}
	if _, err := real[0].NewKernel(KernelSpec{Name: "k", Uses: []Span{m.All()}, Run: func() {}}); err == nil {
		t.Error("a kernel of a real device on memory of a dry run: got no error")
	}
	test.Check(t, CloseAll(dry))
	now, most := dry[0].Held(), dry[0].Peak()
	if now != (Held{}) || most != (Held{Memory: huge}) {
		t.Errorf("after all is closed: %+v, %+v", now, most)
	}
}

// Only devices of a dry run launch a kernel that is not compiled.
func TestDryFunction(t *testing.T) {
	real := hostDevices(t, 1)
	spec := KernelSpec{Name: "k", Function: DryFunction(), Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Argument: []byte{1, 2}}
	if _, err := real[0].NewKernel(spec); err == nil {
		t.Error("a real device: got no error")
	}
	dry := DryRun(real)
	k := test.Must(dry[0].NewKernel(spec))(t)
	s := test.Must(dry[0].NewStream(Normal))(t)
	k.Argument()[0] = 3
	if spec.Argument[0] != 1 || len(k.Argument()) != 2 {
		t.Errorf("arguments %v and %v", spec.Argument, k.Argument())
	}
	test.Check(t, s.Launch(k), s.Sync(time.Minute), k.Close(), CloseAll(dry))
	if _, err := spec.Function.Usage(); err == nil {
		t.Error("Usage: got no error")
	}
}

// Peer access is that of the real devices.
func TestDryRunReachesPeers(t *testing.T) {
	real := hostDevices(t, 3)
	for _, d := range real {
		d.HostMemory = false // like GPUs
	}
	test.Check(t, real[0].EnablePeer(real[1]))
	dry := DryRun(real)
	m := []*Memory{test.Must(dry[1].Alloc(8))(t), test.Must(dry[2].Alloc(8))(t)}
	if !dry[0].Reaches(m[0]) || dry[0].Reaches(m[1]) || dry[1].Reaches(m[1]) {
		t.Error("peers must not be reached before EnablePeer")
	}
	if ok, err := dry[0].CanAccess(dry[2]); !ok || err != nil || m[0].Address() == m[1].Address() || m[0].Address()%256 != 0 {
		t.Errorf("access %t, %v; addresses %#x and %#x", ok, err, m[0].Address(), m[1].Address())
	}
}
