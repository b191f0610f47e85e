package kernels_test

import (
	"testing"
	"time"

	"github.com/halox/halox/internal/testdevices"
)

// A stream does nothing behind a gate until that is opened, each time that it is shut; one
// that nobody opens opens by itself.
func TestGate(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		gate := must(s.Compiler.NewGate(b.device, time.Minute))(t)
		behind := must(b.device.NewEvent())(t)
		for range 3 {
			b.do() // the stream is empty
			if err := gate.Shut(b.stream); err != nil {
				t.Fatal(err)
			}
			if err := b.stream.Record(behind); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
			if done := must(behind.Done())(t); done {
				t.Fatal("the gate was open")
			}
			gate.Open()
			b.do()
		}
		if err := gate.Close(); err != nil {
			t.Error(err)
		}
		short := must(s.Compiler.NewGate(b.device, 50*time.Millisecond))(t)
		defer short.Close()
		start := time.Now()
		b.do(short.Shut(b.stream))
		if took := time.Since(start); took < 50*time.Millisecond || took > 10*time.Second {
			t.Errorf("it opened by itself after %v", took)
		}
	})
}
