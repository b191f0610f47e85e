package streams_test

import (
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// relay is numbers that go to and fro between two devices, which may be one: near is
// changed, goes to the second device, is added up there, and what comes of it is added
// to near again.
type relay struct {
	t                     testing.TB
	out, back, far        *streams.Stream // out and back are of the first device
	near, ones, came      *streams.Memory // of the first device
	sum, arrived          *streams.Memory // of the second
	host                  *streams.Memory
	sent, added           *streams.Event
	count, collect, bring *pack.Copies
	store                 *pack.Copies // near into arrived; nil where that is out of reach
}

const relayNumbers = 1000

func good[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newRelay(t testing.TB, set *testdevices.Set) *relay {
	a, b := set.Devices[0], set.Devices[len(set.Devices)-1]
	const bytes = 8 * relayNumbers
	r := &relay{
		t: t, out: good(a.NewStream(streams.Normal))(t), back: good(a.NewStream(streams.Urgent))(t), far: good(b.NewStream(streams.Normal))(t),
		near: good(a.Alloc(bytes))(t), ones: good(a.Alloc(bytes))(t), came: good(a.Alloc(bytes))(t),
		sum: good(b.Alloc(bytes))(t), arrived: good(b.Alloc(bytes))(t), host: good(a.AllocPinned(bytes))(t),
		sent: good(a.NewEvent())(t), added: good(b.NewEvent())(t),
	}
	first, second := good(pack.NewBoxCopier(set.Compiler, a))(t), good(pack.NewBoxCopier(set.Compiler, b))(t)
	r.count = r.adds(first, r.near, r.ones)
	r.collect = r.adds(second, r.sum, r.arrived)
	r.bring = r.adds(first, r.near, r.came)
	if a.Reaches(r.arrived) {
		r.store = good(first.Copies("store", relayed(r.arrived, r.near)))(t)
	}
	r.fill(r.out, r.ones, 1)
	r.fill(r.out, r.near, 0)
	r.fill(r.far, r.sum, 0)
	return r
}

// relayed is the copy of all numbers.
func relayed(dst, src *streams.Memory) pack.Copy {
	size := domain.Vec{relayNumbers, 1, 1}
	return pack.Copy{Dst: pack.Dense(dst.All(), size), Src: pack.Dense(src.All(), size), Size: size, ElementSize: 8}
}

func (r *relay) adds(m *pack.BoxCopier, dst, src *streams.Memory) *pack.Copies {
	r.t.Helper()
	return good(m.Adds("add", pack.Add{Copy: relayed(dst, src), Number: "int64"}))(r.t)
}

func (r *relay) do(errs ...error) {
	r.t.Helper()
	for _, err := range errs {
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *relay) fill(s *streams.Stream, m *streams.Memory, v int64) {
	r.t.Helper()
	all := streams.View[int64](r.host.Bytes())
	for i := range all {
		all[i] = v * int64(i+1)
	}
	r.do(s.Copy(m.All(), r.host.All()), s.Sync(20*time.Second))
}

// round queues one round, with near sent on its way by send.
func (r *relay) round(send func() error) error {
	for _, queue := range []func() error{
		func() error { return r.out.Launch(r.count.Kernel) },
		send,
		func() error { return r.out.Record(r.sent) },
		func() error { return r.far.Wait(r.sent) },
		func() error { return r.far.Launch(r.collect.Kernel) },
		func() error { return r.far.Copy(r.host.All(), r.sum.All()) },
		func() error { return r.far.Record(r.added) },
		func() error { return r.back.Wait(r.added) },
		func() error { return r.back.Copy(r.came.All(), r.host.All()) },
		func() error { return r.back.Launch(r.bring.Kernel) },
	} {
		if err := queue(); err != nil {
			return err
		}
	}
	return nil
}

// sends returns the ways from the first device to the second.
func (r *relay) sends() map[string]func() error {
	if r.store == nil {
		return nil
	}
	return map[string]func() error{
		"peer":   func() error { return r.out.Copy(r.arrived.All(), r.near.All()) },
		"direct": func() error { return r.out.Launch(r.store.Kernel) },
	}
}

// What is captured over two devices and launched a hundred times gives the numbers that
// the calls would have given, also with calls between the launches.
func TestGraphOverDevices(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		ways := newRelay(t, set).sends()
		if ways == nil {
			t.Skip("SKIPPED: the devices do not reach each other")
		}
		for name := range ways {
			t.Run("send="+name, func(t *testing.T) {
				r := newRelay(t, set)
				r.run(r.sends()[name])
			})
		}
	})
}

func (r *relay) run(send func() error) {
	const launches = 100
	g := good(streams.Capture(r.out, []*streams.Stream{r.back, r.far}, func() error {
		for range 2 {
			if err := r.again(send); err != nil {
				return err
			}
		}
		return nil
	}))(r.t)
	var near, sum int64
	for range launches {
		r.do(g.Launch(), r.out.Launch(r.count.Kernel))
		for range 2 {
			near++
			sum += near
			near += sum
		}
		near++
	}
	r.do(r.out.Copy(r.host.All(), r.near.All()), r.out.Sync(20*time.Second))
	for i, got := range streams.View[int64](r.host.Bytes()) {
		if want := near * int64(i+1); got != want {
			r.t.Fatalf("number %d is %d, want %d", i, got, want)
		}
	}
	r.do(g.Close(), g.Close())
}

// again queues a round that begins after the one before, if there was one in the capture.
func (r *relay) again(send func() error) error {
	if err := r.round(send); err != nil {
		return err
	}
	if err := r.back.Record(r.sent); err != nil {
		return err
	}
	return r.out.Wait(r.sent)
}
