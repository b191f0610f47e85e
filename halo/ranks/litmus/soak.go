package litmus

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/halox/halox/streams"
)

// Soaked is the result of Soak.
type Soaked struct {
	Turns, Rounds int64         // trials, and rounds of all of them
	Took          time.Duration // total time
}

// Soak runs tests until some time has passed, each trial with its own seed. The seed selects the test, the
// devices (one, two or all), how many ranks share a multiprocessor, and the data. If Tests have a seed, Soak
// runs one trial with that seed: it reproduces an earlier error, unless that depends on the order in which
// ranks arrive. The error of a trial names its seed. Soak stops when the context ends, with its cause as the
// error.
func (t Tests) Soak(ctx context.Context, long time.Duration, devices ...*streams.Device) (done Soaked, err error) {
	once := t.Seed != 0
	for begun := time.Now(); ; {
		if err := context.Cause(ctx); err != nil {
			return done, err
		}
		if !once {
			t.Seed = rand.Uint32()
		}
		turn := t.turn(devices)
		if err := turn.test(turn.Tests, ctx, turn.devices...); err != nil {
			return done, err
		}
		done.Turns, done.Rounds, done.Took = done.Turns+1, done.Rounds+t.rounds(), time.Since(begun)
		if once || done.Took >= long {
			return done, nil
		}
	}
}

// trial is what a seed selects.
type trial struct {
	Tests
	test    func(Tests, context.Context, ...*streams.Device) error
	devices []*streams.Device
}

func (t Tests) turn(devices []*streams.Device) trial {
	const mostEach = 4 // blocks with this few threads fit more often on any GPU
	r := rand.New(rand.NewPCG(uint64(t.Seed), 0))
	all := [...]func(Tests, context.Context, ...*streams.Device) error{
		Tests.Puts, Tests.Counts, Tests.Barriers, Tests.AllToOne,
	}
	some := [...]int{1, min(2, len(devices)), len(devices)}[r.IntN(3)]
	first := r.IntN(len(devices))
	chosen := trial{Tests: t, test: all[r.IntN(len(all))]}
	for i := range some {
		chosen.devices = append(chosen.devices, devices[(first+i)%len(devices)])
	}
	chosen.each = 1 + r.IntN(mostEach)
	return chosen
}
