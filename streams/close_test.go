package streams

import (
	"strings"
	"testing"
	"time"
)

// A stream may still copy from the memory of a device that comes earlier.
func TestCloseAllFreesNothingWhileStreamsRun(t *testing.T) {
	d := hostDevices(t, 2)
	m := must[*Memory](t)(d[0].Alloc(8))
	s := must[*Stream](t)(d[1].NewStream(Normal))
	slow := must[*Kernel](t)(d[1].NewKernel(KernelSpec{Name: "slow", Run: func() {
		time.Sleep(30 * time.Millisecond)
		if m.Bytes() == nil {
			panic("its memory is gone")
		}
	}}))
	check(t, s.Launch(slow), CloseAll(d))
	if m.Bytes() != nil {
		t.Error("the memory was not freed")
	}
}

// What was made after a stream may still be in use by it.
func TestResourcesFreeNothingWhileStreamsRun(t *testing.T) {
	d := hostDevices(t, 1)[0]
	var made Resources
	s := must[*Stream](t)(d.NewStream(Normal))
	m := must[*Memory](t)(d.Alloc(8))
	made.Add(s, m)
	slow := must[*Kernel](t)(d.NewKernel(KernelSpec{Name: "slow", Run: func() {
		time.Sleep(30 * time.Millisecond)
		if m.Bytes() == nil {
			panic("its memory is gone")
		}
	}}))
	check(t, s.Launch(slow), made.Close(), d.Close())
	if m.Bytes() != nil {
		t.Error("the memory was not freed")
	}
}

func TestAHangingStreamKillsItsDevice(t *testing.T) {
	d := hostDevices(t, 1)[0]
	d.SetGrace(30 * time.Millisecond)
	m := must[*Memory](t)(d.Alloc(8))
	s := must[*Stream](t)(d.NewStream(Normal))
	end := make(chan struct{})
	defer close(end)
	check(t, s.Launch(must[*Kernel](t)(d.NewKernel(KernelSpec{Name: "endless", Run: func() { <-end }}))))
	err := s.Close()
	if err == nil || !strings.Contains(err.Error(), "device host 0: close a stream: it hangs: not done after 30ms") {
		t.Errorf("got %v", err)
	}
	if _, again := d.NewEvent(); again != err {
		t.Errorf("later calls say %v", again)
	}
	check(t, m.Close(), d.Close())
	if m.Bytes() == nil {
		t.Error("memory was freed that the stream may use")
	}
}
