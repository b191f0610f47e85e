package flags_test

import (
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/flags"
)

// Two devices, and a device and the host, pass a flag back and forth repeatedly.
func TestFlagPingPong(t *testing.T) {
	play := func(t *testing.T, r *flags.PingPong) {
		defer r.Close()
		for _, rounds := range []int{1000, 1, 300} {
			took, err := r.Play(rounds)
			if err != nil || took < 0 || took > time.Minute {
				t.Errorf("%d rounds: got %v, %v", rounds, took, err)
			}
			t.Logf("%d rounds: %v one way", rounds, took)
		}
	}
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		play(t, test.Must(flags.NewPingPong(s.Compiler, s.Devices[0], nil, time.Minute))(t))
		if len(s.Devices) < 2 || !s.Links.Between(s.Devices[0], s.Devices[1]).Usable || !s.Links.Between(s.Devices[1], s.Devices[0]).Usable {
			t.Skip("SKIPPED: no two devices that reach each other")
		}
		play(t, test.Must(flags.NewPingPong(s.Compiler, s.Devices[0], s.Devices[1], time.Minute))(t))
	})
}

// Work behind a gate runs only after Open, repeatedly.
func TestGate(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		d := s.Devices[0]
		stream := test.Must(d.NewStream(0))(t)
		e := test.Must(d.NewEvent())(t)
		nothing := test.Must(flags.NewNothing(s.Compiler, d))(t)
		test.Check(t, stream.Launch(nothing))
		g := test.Must(flags.NewGate(s.Compiler, d, time.Minute))(t)
		defer g.Close()
		for range 3 {
			test.Check(t, g.Shut(stream))
			test.Check(t, stream.Launch(nothing))
			test.Check(t, stream.Record(e))
			time.Sleep(5 * time.Millisecond)
			if done, err := e.Done(); done || err != nil {
				t.Fatalf("ran: %t, %v", done, err)
			}
			test.Check(t, g.Open())
			test.Check(t, stream.Sync(time.Minute))
		}
	})
}
