package packing_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// pair is two devices that send to each other, or one if there is only one.
type pair struct{ from, to *engineBench }

func newPair(t *testing.T, set *testdevices.Set) pair {
	other := *set
	other.Devices = slices.Clone(set.Devices)
	slices.Reverse(other.Devices)
	return pair{newEngineBench(t, set, packing.Options{}), newEngineBench(t, &other, packing.Options{})}
}

// send sends a message twice and compares all bytes of the receiver with the type map.
func (p pair) send(t testing.TB, recv, send workloads.Side, o packing.TransferOptions) error {
	t.Helper()
	src, dst := typetest.Numbered(send.Array+margin), slices.Repeat([]byte{poison}, int(recv.Array+margin))
	user, target := p.from.memory(t, src), p.to.memory(t, dst)
	defer user.Close()
	defer target.Close()
	side := func(b *engineBench, m *streams.Memory, s workloads.Side) packing.Side {
		return packing.Side{Packer: b.packers[0], Place: packing.Place{Data: m.All(), Origin: s.Origin}, Message: test.Must(packing.NewMessageLayout(s.Type, s.Count))(t)}
	}
	transfer, err := packing.NewTransfer(side(p.to, target, recv), side(p.from, user, send), o)
	if err != nil {
		return err
	}
	defer transfer.Close()
	for range 2 {
		if err := errors.Join(transfer.Queue(p.to.stream, p.from.stream), p.to.stream.Sync(limit), p.from.stream.Sync(limit)); err != nil {
			return err
		}
	}
	packed := make([]byte, send.Type.Size()*int64(send.Count))
	err = errors.Join(datatype.Pack(packed, src, send.Origin, send.Type, send.Count), datatype.Unpack(dst, recv.Origin, packed, recv.Type, recv.Count))
	if err != nil {
		return err
	}
	for i, got := range p.to.read(t, target) {
		if got != dst[i] {
			return fmt.Errorf("byte %d is %#x, not %#x", i, got, dst[i])
		}
	}
	return nil
}

// ways are all options of transfers.
func ways(links *p2p.Links, from, to *streams.Device) []packing.TransferOptions {
	all := []packing.TransferOptions{{Path: p2p.Staged}, {Path: p2p.Staged, Fragment: 1 << 10, Ring: 2, Engine: packing.Units}}
	if l := links.Between(from, to); from == to || l != nil && l.Usable {
		all = append(all, packing.TransferOptions{}, packing.TransferOptions{Path: p2p.Direct, Fragment: 3 << 10, Ring: 1},
			packing.TransferOptions{Path: p2p.Peer, Fragment: 4 << 10, Ring: 4}, packing.TransferOptions{Path: p2p.Peer, Fragment: 5000, Remote: true})
	}
	return all
}

// Every workload arrives as the type map requires, on every path.
func TestTransfersOfWorkloads(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		most, p := maxOf(set)/2, newPair(t, set)
		for _, w := range testdevices.Again(10, testdevices.Some(40, test.Must(workloads.All())(t))) {
			if w.Bytes > most || w.Send.Array > 16*most || w.Recv.Array > 16*most {
				continue
			}
			for _, o := range ways(set.Links, p.from.device, p.to.device) {
				if err := p.send(t, w.Recv, w.Send, o); err != nil {
					t.Errorf("%v, %+v: %v", w, o, err)
				}
			}
		}
	})
}

// scattered returns n numbers in random blocks, some short and some long, with gaps, in separate memory.
func scattered(s typetest.Source, t testing.TB, n int) workloads.Side {
	var lengths, places []int
	at := s(0, 9)
	for n > 0 {
		length := min(n, s(1, []int{3, 40, 300}[s(0, 2)]))
		lengths, places = append(lengths, length), append(places, at)
		at, n = at+length+s(0, 3), n-length
	}
	typ := test.Must(datatype.Indexed(lengths, places, datatype.Float64))(t)
	return workloads.Side{Type: typ, Count: 1, Array: typ.TrueUB()}
}

// Messages can have different layouts at both ends, with or without packing in between.
func TestTransfersBetweenLayouts(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := newPair(t, set)
		for _, seed := range testdevices.Again(5, testdevices.Some(20, testdevices.Numbers(40))) {
			random := typetest.Seeded(uint64(seed))
			n := random(1, 6000)
			from, to := scattered(random, t, n), scattered(random, t, n)
			if seed%5 == 0 {
				to = from
			}
			for _, o := range ways(set.Links, p.from.device, p.to.device) {
				if err := p.send(t, to, from, o); err != nil {
					t.Fatalf("seed %d, %+v: %v", seed, o, err)
				}
			}
		}
	})
}

func TestTransferRefusals(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := newPair(t, set)
	number := workloads.Side{Type: datatype.Int32, Count: 4, Array: 16}
	twice := workloads.Side{Type: test.Must(datatype.Vector(2, 2, 1, datatype.Int32))(t), Count: 1, Array: 16}
	large := workloads.Side{Type: datatype.Int32, Count: 1 << 15, Array: 1 << 17}
	for name, c := range map[string]struct {
		recv, send workloads.Side
		o          packing.TransferOptions
	}{
		"another signature":   {workloads.Side{Type: datatype.Float32, Count: 4, Array: 16}, number, packing.TransferOptions{}},
		"more than is sent":   {workloads.Side{Type: datatype.Int32, Count: 5, Array: 20}, number, packing.TransferOptions{}},
		"bytes touched twice": {twice, number, packing.TransferOptions{}},
		"no such path":        {number, number, packing.TransferOptions{Path: "pigeon"}},
		"no such engine":      {number, number, packing.TransferOptions{Engine: "steam"}},
		"a ring without end":  {number, number, packing.TransferOptions{Ring: 1 << 40}},
		"bytes one by one":    {large, large, packing.TransferOptions{Fragment: 1}},
		"out of memory":       {workloads.Side{Type: datatype.Int32, Count: 4, Origin: 1 << 20, Array: 16}, number, packing.TransferOptions{}},
	} {
		if err := p.send(t, c.recv, c.send, c.o); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
	if _, err := packing.NewTransfer(packing.Side{}, packing.Side{}, packing.TransferOptions{}); err == nil {
		t.Error("a transfer between no packers was accepted")
	}
}

// What is nil, and places beyond all memory, are refused.
func TestJobsOfNothing(t *testing.T) {
	t.Setenv("HALOX_CACHE", t.TempDir())
	set := testdevices.Host(t, 1)
	d := set.Devices[0]
	p := test.Must(packing.New(set.Compiler, d, packing.Options{}))(t)
	m := test.Must(d.Alloc(64))(t)
	ints := func(displacements ...int64) *packing.MessageLayout {
		lengths := slices.Repeat([]int{1}, len(displacements))
		return test.Must(packing.NewMessageLayout(test.Must(datatype.HIndexed(lengths, displacements, datatype.Int32))(t), 1))(t)
	}
	backwards := test.Must(packing.NewMessageLayout(test.Must(datatype.HIndexed([]int{1}, []int64{-20}, datatype.Int32))(t), 1))(t)
	for name, call := range map[string]func() error{
		"no compiler": func() error { _, err := packing.New(nil, d, packing.Options{}); return err },
		"no device":   func() error { _, err := packing.New(set.Compiler, nil, packing.Options{}); return err },
		"no message":  func() error { _, err := p.Pack(packing.Auto, m.All(), packing.Place{Data: m.All()}, nil); return err },
		"no layout": func() error {
			_, err := p.Unpack(packing.Auto, packing.Place{Data: m.All()}, m.All(), &packing.MessageLayout{})
			return err
		},
		"an origin far below": func() error {
			_, err := p.Pack(packing.Copies, m.All(), packing.Place{Data: m.All(), Origin: math.MinInt64 + 10}, backwards)
			return err
		},
		"packed over its elements": func() error {
			_, err := p.Pack(packing.Auto, m.Span(12, 8), packing.Place{Data: m.All()}, ints(16, 0))
			return err
		},
		"unpacked over its bytes": func() error {
			_, err := p.Unpack(packing.Copies, packing.Place{Data: m.All(), Origin: 4}, m.Span(0, 8), ints(0, 16))
			return err
		},
		"sent over itself": func() error {
			side := func(l *packing.MessageLayout) packing.Side {
				return packing.Side{Packer: p, Place: packing.Place{Data: m.All()}, Message: l}
			}
			_, err := packing.NewTransfer(side(ints(8, 20)), side(ints(0, 22)), packing.TransferOptions{})
			return err
		},
	} {
		if err := call(); err == nil || !strings.HasPrefix(err.Error(), "packing: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	gap := test.Must(p.Pack(packing.Copies, m.Span(4, 8), packing.Place{Data: m.All()}, ints(0, 16)))(t)
	test.Report(t, gap.Close())
	test.Report(t, p.Close())
}
