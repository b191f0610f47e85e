package litmus

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/halox/halox/streams"
)

// Soaked is what Soak has done.
type Soaked struct {
	Turns, Rounds int64
	Took          time.Duration
}

// Soak runs one test after the other until some time has passed, each turn with a seed of its own. The seed chooses the
// test, the devices, one, two or all, how many ranks share a multiprocessor, and the data. Where Tests have a seed
// there is one turn, of that seed: what a turn with it has found is found again, as far as it does not hang on the
// order in which ranks come. The error of a turn names its seed. When the context ends, so does Soak, with its cause as
// the error.
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

// turn is what a seed chooses.
type turn struct {
	Tests
	test    func(Tests, context.Context, ...*streams.Device) error
	devices []*streams.Device
}

func (t Tests) turn(devices []*streams.Device) turn {
	const mostEach = 4 // of blocks of so few threads more fit on any GPU
	r := rand.New(rand.NewPCG(uint64(t.Seed), 0))
	all := [...]func(Tests, context.Context, ...*streams.Device) error{
		Tests.Puts, Tests.Counts, Tests.Barriers, Tests.AllToOne,
	}
	some := [...]int{1, min(2, len(devices)), len(devices)}[r.IntN(3)]
	first := r.IntN(len(devices))
	chosen := turn{Tests: t, test: all[r.IntN(len(all))]}
	for i := range some {
		chosen.devices = append(chosen.devices, devices[(first+i)%len(devices)])
	}
	chosen.each = 1 + r.IntN(mostEach)
	return chosen
}
