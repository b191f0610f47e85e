package litmus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// kind is one of the litmus tests.
type kind struct {
	name string
	run  func(t Tests, ctx context.Context, devices ...*streams.Device) error
}

var (
	puts     = kind{"puts", Tests.Puts}
	counts   = kind{"counts", Tests.Counts}
	barriers = kind{"barriers", Tests.Barriers}
	allToOne = kind{"all to one", Tests.AllToOne}
	kinds    = []kind{puts, counts, barriers, allToOne}
)

// testLimit is the limit of waits that end earlier.
const testLimit = 5 * time.Minute

func testsOf(s *testdevices.Set) Tests {
	t := Tests{Compiler: s.Compiler, Links: s.Links, Ranks: 3, Limit: testLimit}
	if testdevices.OnCPU(s.Devices[0]) {
		t.Rounds = 40
	}
	return t
}

// All litmus tests hold on one device, between two and among three.
func TestLitmus(t *testing.T) {
	testdevices.EachKernel(t, 3, func(t *testing.T, s *testdevices.Set) {
		for _, k := range kinds {
			for n := 1; n <= min(3, len(s.Devices)); n++ {
				t.Run(fmt.Sprintf("%s/devices=%d", k.name, n), func(t *testing.T) {
					if err := k.run(testsOf(s), t.Context(), s.Devices[:n]...); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}

// Missing or duplicate notifications, wrong bits and late ranks are found. The error names ranks, devices and
// the first wrong byte, or a rank that waited too long: the one that was not notified, or another that waits
// for it.
func TestFaultsAreFound(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		if len(s.Devices) < 2 {
			t.Skip("SKIPPED: needs two devices")
		}
		for _, c := range []struct {
			kind  kind
			fault int64
			is    error
			says  []string
		}{
			{puts, flipped, errWrong, []string{"rank 3 (", " 1) has 0x", " in byte ", " put by rank 0 (", " 0) in round "}},
			{puts, dropped, ranks.ErrTimeout, []string{"ranks: rank ", " for 1 notifications of tag ", "; 0 arrived"}},
			{counts, dropped, nil, []string{"rank "}},
			{barriers, flipped, errWrong, []string{"left barrier 6 and saw 6 of rank 0 (", "want 7"}},
			{allToOne, flipped, errWrong, []string{" in byte 3 put by rank 0 (", " 0) in round "}},
			{allToOne, dropped, ranks.ErrTimeout, []string{"ranks: rank ", " waited "}},
		} {
			t.Run(c.kind.name+"/"+map[int64]string{flipped: "flipped", dropped: "dropped"}[c.fault], func(t *testing.T) {
				one := testsOf(s)
				one.fault, one.where = c.fault, 7
				if c.kind.name == barriers.name {
					one.where = 6 // a barrier of all ranks
				}
				testdevices.Patiently(t, func(limit time.Duration) error {
					one.Limit = limit
					err := c.kind.run(one, t.Context(), s.Devices[:2]...)
					if err == nil || c.is != nil && !errors.Is(err, c.is) || lacks(err, c.says) != "" {
						return fmt.Errorf("%w does not contain %q", err, c.says)
					}
					return nil
				})
			})
		}
	})
}

// lacks returns the first of the words that an error does not contain, or "".
func lacks(err error, words []string) string {
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			return w
		}
	}
	return ""
}

// Soak runs trials until the time is over, of all tests and on one device, two and all; a seed is one trial,
// the same each time; and errors are found, with the seed that reproduces them.
func TestSoak(t *testing.T) {
	s := testdevices.Host(t, 3)
	tests := testsOf(s)
	tests.Rounds = 5
	const long = 300 * time.Millisecond
	begun := time.Now()
	done, err := tests.Soak(t.Context(), long, s.Devices...)
	if err != nil || done.Turns < 1 || done.Rounds != 5*done.Turns || done.Took < long || time.Since(begun) > 30*time.Second {
		t.Errorf("%+v, %v", done, err)
	}
	seen := map[string]bool{}
	for seed := uint32(1); seed < 200; seed++ {
		tests.Seed = seed
		a, b := tests.turn(s.Devices), tests.turn(s.Devices)
		if a.each != b.each || !slices.Equal(a.devices, b.devices) || a.each < 1 {
			t.Fatalf("seed %d selects %+v and %+v", seed, a, b)
		}
		seen[fmt.Sprint(len(a.devices), " devices")], seen[fmt.Sprint(a.each, " ranks")] = true, true
	}
	if len(seen) != 3+4 {
		t.Errorf("200 seeds select %v", seen)
	}
	tests.Seed = 0
	tests.fault, tests.where = flipped, 0
	_, err = tests.Soak(t.Context(), time.Minute, s.Devices...)
	var seed uint32
	if !errors.Is(err, errWrong) {
		t.Fatalf("a fault gives %v", err)
	}
	if _, scan := fmt.Sscanf(err.Error(), "seed %d:", &seed); scan != nil || seed == 0 {
		t.Fatalf("%v does not name a seed", err)
	}
	tests.Seed = seed
	if done, again := tests.Soak(t.Context(), time.Hour, s.Devices...); !errors.Is(again, errWrong) || done.Turns != 0 {
		t.Errorf("%v is reproduced as %v", err, again)
	}
	tests.fault = 0
	if done, err := tests.Soak(t.Context(), time.Hour, s.Devices...); err != nil || done.Turns != 1 {
		t.Errorf("one seed gives %+v, %v", done, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	tests.Seed = 0
	if _, err := tests.Soak(ctx, time.Hour, s.Devices...); !errors.Is(err, why) {
		t.Errorf("it ends with %v", err)
	}
}

// The kernels compile for GPUs, with and without the checks of the tests.
func TestKernelsCompile(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	for _, defines := range testdevices.Some(1, [][]string{{"RANK_CHECKS"}, nil}) {
		testdevices.Compile(t, kernels.Source{Name: "litmus.cu", Text: source, Defines: defines})
	}
}
