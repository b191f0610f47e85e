package ranks_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// collectiveCalls is struct Calls of collectives.cu.
type collectiveCalls struct {
	Results, Scratch uint64
	Rounds, Rest     int64
}

// mostValues is the largest count of a call.
const mostValues = 200

func give[T ranks.Numeric](h uint32) T {
	switch any(*new(T)).(type) {
	case float64:
		return T(float64(int32(h)) / float64(1+h%7))
	case float32:
		return T(float32(int32(h)) / float32(1+h%7))
	}
	return T(int64(uint64(h) * 0x9e3779b97f4a7c15))
}

// collectiveCall is the call of all ranks in a round.
type collectiveCall struct {
	kind, root, n int
	separate      bool // the result is in separate memory
	op            ranks.Op
	comm          ranks.Comm
}

func callOf(round, ranksOfDevice, all int) collectiveCall {
	h := hash(99, uint32(round))
	c := collectiveCall{kind: int(h % 4), separate: h/4%2 == 0, op: ranks.Op(h / 8192 % 3), n: []int{1, 0, 2, 31, 32, 33, 64, 65, 1, mostValues}[h/32%10]}
	size := all
	if h/1024%4 == 0 {
		c.comm, size = ranks.Device, ranksOfDevice
	}
	c.root = int(h / 16 % uint32(size))
	return c
}

// callOnHost is the counterpart of call.
func callOnHost[T ranks.Numeric](r *ranks.Rank, to, separate []byte, t int) bool {
	c := callOf(t, r.Size(ranks.Device), r.Size(ranks.All))
	result := streams.View[T](to)[:c.n]
	from := result
	if c.separate {
		from = streams.View[T](separate)[:c.n]
	}
	for i := range from {
		from[i] = give[T](hash(hash(uint32(r.Index(ranks.All)), uint32(t)), uint32(i)))
	}
	switch c.kind {
	case 0:
		return ranks.Reduce(r, result, from, c.op, c.root, c.comm)
	case 1:
		copy(result, from)
		return ranks.Broadcast(r, result, c.root, c.comm)
	}
	return ranks.Allreduce(r, result, from, c.op, c.comm)
}

// joined is the oracle: the values of all ranks, joined recursively in the order of Allreduce.
func joined[T ranks.Numeric](op ranks.Op, values []T) T {
	both := func(a, b T) T {
		switch op {
		case ranks.Min:
			return min(a, b)
		case ranks.Max:
			return max(a, b)
		}
		return a + b
	}
	whole := 1
	for 2*whole <= len(values) {
		whole *= 2
	}
	folded := append([]T(nil), values[:whole]...)
	for i, v := range values[whole:] {
		folded[i] = both(folded[i], v)
	}
	var halves func(v []T) T
	halves = func(v []T) T {
		if len(v) == 1 {
			return v[0]
		}
		return both(halves(v[:len(v)/2]), halves(v[len(v)/2:]))
	}
	return halves(folded)
}

// checkCall compares all bits of a rank's result with the oracle.
func checkCall[T ranks.Numeric](t *testing.T, round, rank, each, all int, got []byte) {
	t.Helper()
	c := callOf(round, each, all)
	first, size := 0, all
	if c.comm == ranks.Device {
		first, size = rank/each*each, each
	}
	if c.kind == 0 && rank != first+c.root {
		return
	}
	for i, v := range streams.View[T](got)[:c.n] {
		given := make([]T, size)
		for k := range given {
			given[k] = give[T](hash(hash(uint32(first+k), uint32(round)), uint32(i)))
		}
		want := given[c.root]
		if c.kind != 1 {
			want = joined(c.op, given)
		}
		if v != want {
			t.Fatalf("round %d, rank %d of %d: element %d of %+v is %v, want %v", round, rank, all, i, c, v, want)
		}
	}
}

// collectiveTypes are the types of the values of rounds, alternating.
var collectiveTypes = [3]struct {
	call  func(r *ranks.Rank, to, separate []byte, t int) bool
	check func(t *testing.T, round, rank, each, all int, got []byte)
}{{callOnHost[float64], checkCall[float64]}, {callOnHost[float32], checkCall[float32]}, {callOnHost[int64], checkCall[int64]}}

// Sequences of collectives of all kinds, between ranks that pause, give bitwise the results of the documented
// order, for any number of ranks and devices. The counts of parts wrap around.
func TestCollectives(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	for _, devices := range testdevices.Some(2, []int{1, 2, 3}) {
		t.Run(fmt.Sprintf("devices=%d", devices), func(t *testing.T) {
			eachLink(t, devices, func(t *testing.T, s *testdevices.Set) {
				s.Devices = s.Devices[:min(devices, len(s.Devices))]
				type collectives struct {
					each, threads int
					first         uint64
				}
				for _, c := range testdevices.Some(3, []collectives{
					{1, 32, 0}, {2, 64, 1<<64 - 14}, {4, 32, 1<<32 - 10}, {6 / devices, 96, 0}, {7, 64, 0},
				}) {
					t.Run(fmt.Sprintf("ranks=%d", c.each), func(t *testing.T) { testCollectives(t, s, c.each, c.threads, c.first) })
				}
			})
		})
	}
}

func testCollectives(t *testing.T, s *testdevices.Set, each, threads int, first uint64) {
	if isHeavy(s, each) {
		t.Skip("SKIPPED: needs make test-long for this many ranks of several processes on the CPU")
	}
	rounds, rest := fewByProxy(t, 60), 20*time.Microsecond
	if !together.IsAlone() && testdevices.OnCPU(s.Devices[0]) {
		rounds = len(testdevices.Again(15, testdevices.Some(30, testdevices.Numbers(rounds)))) // as by proxies
	}
	rounds = onGPUs(t, s, rounds, 50)
	room := int64(8 * mostValues)
	var results, scratch []*streams.Memory
	w := opened(t, s, ranks.Program{Name: "collectives", Source: sourceOf("collectives.cu"), Kernel: "collectives", Threads: threads, Host: func(r *ranks.Rank) {
		local := int64(r.Index(ranks.Device))
		separate := scratch[r.Device()].Bytes()[room*local:][:room]
		for t := range rounds {
			to := results[r.Device()].Bytes()[room*(local*int64(rounds)+int64(t)):][:room]
			if pause := hash(uint32(r.Index(ranks.All)), uint32(t)); pause%4 == 0 {
				time.Sleep(time.Duration(pause/4) % rest)
			}
			if !collectiveTypes[t%3].call(r, to, separate, t) {
				return
			}
		}
	}}, ranks.Options{Ranks: each, Checks: each == 4, Queues: each == 2})
	ranks.SetFirstCount(w, first)
	results, scratch = memory(t, w, room*int64(each*rounds)), memory(t, w, room*int64(each))
	for range 2 {
		run(t, w, func(i int) collectiveCalls {
			return collectiveCalls{results[i].Address(), scratch[i].Address(), int64(rounds), rest.Nanoseconds()}
		})
		for i, d := range w.Devices() {
			all := download(t, d, results[i])
			for local := range each {
				for round := range rounds {
					got := all[room*int64(local*rounds+round):][:room]
					collectiveTypes[round%3].check(t, round, w.First()+i*each+local, each, w.Size(), got)
				}
			}
		}
	}
}

// download returns the bytes of memory of a device.
func download(t *testing.T, d *streams.Device, from *streams.Memory) []byte {
	t.Helper()
	to := test.Must(d.AllocPinned(from.Size()))(t)
	s := test.Must(d.NewStream(streams.Normal))(t)
	test.Check(t, errors.Join(s.Copy(to.All(), from.All()), s.Sync(time.Minute), s.Close()))
	bytes := append([]byte(nil), to.Bytes()...)
	test.Check(t, to.Close())
	return bytes
}

// Ranks whose calls differ fail with their call, or the error names the missing rank.
func TestOddCollectives(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	const sum = "an allreduce (sum) of 8 doubles"
	differ := func(odd string) []string { // for any rank that reports it
		const text = "called %s, but another rank called %s"
		return []string{fmt.Sprintf(text, odd, sum), fmt.Sprintf(text, sum, odd)}
	}
	cases := []struct {
		name string
		is   error
		want []string // one of them
		host func(r *ranks.Rank, v []float64) bool
	}{
		{"another count", ranks.ErrArgument, differ("an allreduce (sum) of 7 doubles"), func(r *ranks.Rank, v []float64) bool {
			return ranks.Allreduce(r, v[:7], v[:7], ranks.Sum, ranks.All)
		}},
		{"another operation", ranks.ErrArgument, differ("an allreduce (max) of 8 doubles"), func(r *ranks.Rank, v []float64) bool {
			return ranks.Allreduce(r, v, v, ranks.Max, ranks.All)
		}},
		{"root too large", ranks.ErrArgument, []string{"named rank 6, must be less than 6"}, func(r *ranks.Rank, v []float64) bool {
			return ranks.Broadcast(r, v, r.Size(ranks.All), ranks.All)
		}},
		{"another collective", ranks.ErrArgument, differ("a broadcast of 8 doubles from rank 1"), func(r *ranks.Rank, v []float64) bool {
			return ranks.Broadcast(r, v, 1, ranks.All)
		}},
		{"unknown operation", ranks.ErrArgument, differ("an allreduce (unknown operation) of 8 doubles"), func(r *ranks.Rank, v []float64) bool {
			return ranks.Allreduce(r, v, v, ranks.Op(9), ranks.All)
		}},
		{"no call", ranks.ErrTimeout, []string{
			"for rank 4 in an allreduce", "for rank 0 in an allreduce", "for rank 1 in an allreduce", "for 1 notifications of tag 200; 0 arrived",
		}, func(*ranks.Rank, []float64) bool { return true }},
	}
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		s.Devices = s.Devices[:min(2, len(s.Devices))]
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				p := ranks.Program{Name: "odd_one", Source: sourceOf("collectives.cu"), Kernel: "odd_one", Threads: 64, Host: func(r *ranks.Rank) {
					v := []float64{1, 1, 1, 1, 1, 1, 1, 1}
					ok := ranks.Allreduce(r, v, v, ranks.Sum, ranks.All)
					if ok && v[7] != float64(r.Size(ranks.All)) {
						panic("a wrong sum")
					}
					if r.Index(ranks.All) == 4 {
						ok = c.host(r, v)
					} else {
						ok = ranks.Allreduce(r, v, v, ranks.Sum, ranks.All)
					}
					if ok {
						r.WaitNotifications(200, 1)
					}
				}}
				data := slices.Repeat([]wrong{{What: callNamed(c.name), Rank: 4}}, len(s.Devices))
				patiently(t, c.is, func(limit time.Duration) error {
					w := opened(t, s, p, ranks.Options{Ranks: 6 / len(s.Devices), Limit: limit, Checks: true})
					for range 2 { // the next run starts in the initial state
						err := ranks.Run(t.Context(), w, data)
						says := func(want string) bool {
							if c.is == ranks.ErrTimeout {
								want = fmt.Sprintf("waited %v %s", limit, want)
							}
							return strings.Contains(fmt.Sprint(err), want)
						}
						if !errors.Is(err, c.is) || !slices.ContainsFunc(c.want, says) {
							return fmt.Errorf("the error is %v, want one of %q", err, c.want)
						}
					}
					return nil
				})
			})
		}
	})
}

// A NaN of any rank propagates to sums, minima and maxima.
func TestNaN(t *testing.T) {
	s := testdevices.Host(t, 1)
	for at := range 5 {
		w := opened(t, s, ranks.Program{Name: "nan", Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
			for _, op := range []ranks.Op{ranks.Sum, ranks.Min, ranks.Max} {
				v := []float64{float64(r.Index(ranks.All))}
				if r.Index(ranks.All) == at {
					v[0] = math.NaN()
				}
				if !ranks.Allreduce(r, v, v, op, ranks.All) || v[0] == v[0] {
					panic(fmt.Sprint(op, " of a NaN is ", v[0]))
				}
			}
		}}, ranks.Options{Ranks: 5})
		test.Report(t, ranks.Run(t.Context(), w, make([]struct{}, 1)))
	}
}
