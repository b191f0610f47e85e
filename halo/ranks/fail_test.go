package ranks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// fails is struct Fails of litmus.cu.
type fails struct {
	Apart                   uint64
	Rank, Code, Detail, Tag int64
}

// A rank ends a run with an error of the program, which names the rank, its device, the code and what that means,
// whether the others wait or ask whether the run has ended; and the next run finds all as it was.
func TestFail(t *testing.T) {
	crowded := errors.New("a segment is full")
	const n = 3
	eachLink(t, 2, func(t *testing.T, s *testdevices.Set) {
		p := ranks.Program{Name: "fails", Kernel: "fails", Threads: 96, Errors: map[int64]error{7: crowded}, Host: func(r *ranks.Rank) {
			data := ranks.Data[fails](r)
			if int64(r.Index(ranks.All)) == data.Rank {
				r.Fail(data.Code, data.Detail)
				r.Fail(data.Code+1, 0) // is too late
			}
			for data.Tag >= 0 && r.WaitNotifications(int(data.Tag), 1) || data.Tag < 0 && !r.Ended() {
				time.Sleep(time.Microsecond)
			}
		}}
		w := opened(t, s, p, ranks.Options{Ranks: n})
		m := memory(t, w, 8)
		last := w.Size() - 1
		for _, c := range []struct {
			data  fails
			want  string
			means error
		}{
			{fails{Rank: 1, Code: 7, Detail: 40, Tag: 3}, "failed with code 7, detail 40: a segment is full", crowded},
			{fails{Rank: int64(last), Code: 7, Tag: -1}, "failed with code 7: a segment is full", crowded},
			{fails{Rank: 0, Code: -8, Detail: -1, Tag: -1}, "failed with code -8, detail -1", nil},
			{fails{Rank: int64(last), Tag: 0}, "failed with code 0", nil},
		} {
			data := make([]fails, len(s.Devices))
			for i := range data {
				data[i] = c.data
				data[i].Apart = m[i].Address()
				upload(t, s.Devices[i], m[i], []uint64{0})
			}
			begun := time.Now()
			err := ranks.Run(t.Context(), w, data)
			rank := int(c.data.Rank)
			var of *ranks.CodeError
			if !errors.As(err, &of) || of.Rank != rank || of.Code != c.data.Code || of.Detail != c.data.Detail {
				t.Fatalf("the error is %v: %#v", err, of)
			}
			// The device of another process has its name there
			if i := rank/n - w.First()/n; i >= 0 && i < len(s.Devices) && of.Device != s.Devices[i].String() {
				t.Errorf("the error is of %v, want %v", of.Device, s.Devices[i])
			}
			if want := fmt.Sprintf("ranks: rank %d (%v) %s", rank, of.Device, c.want); !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
			if errors.Is(err, crowded) != (c.means != nil) || errors.Is(err, ranks.ErrTimeout) {
				t.Errorf("%v wraps another error", err)
			}
			if strings.Contains(err.Error(), "another process has ended the run") {
				t.Errorf("%v is of processes too that have not failed", err)
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			for i := range data {
				if apart := streams.View[uint64](download(t, s.Devices[i], m[i])[:8])[0]; apart != 0 {
					t.Errorf("%d threads on %v saw the end in other rounds than the first of their rank", apart, s.Devices[i])
				}
			}
		}
	})
}

// How many ranks there are where a multiple, or no more than a number, is wanted; and what is refused.
func TestRankCounts(t *testing.T) {
	p := ranks.Program{Name: "fails", Source: source(), Kernel: "fails", Threads: 64, Host: func(*ranks.Rank) {}}
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		count := func(o ranks.Options) (int, error) {
			w, err := ranks.New(s.Compiler, s.Devices, s.Links, p, o)
			if err != nil {
				return 0, err
			}
			return w.Ranks(), w.Close()
		}
		fits := test.Must(count(ranks.Options{}))(t)
		cores := s.Devices[0].Cores
		for _, d := range s.Devices {
			cores = min(cores, d.Cores)
		}
		each := 1
		if fits >= 2*cores {
			each = 2
		}
		for _, c := range []struct {
			o    ranks.Options
			want int
		}{
			{ranks.Options{AtMost: 1}, 1},
			{ranks.Options{AtMost: fits + 1}, fits},
			{ranks.Options{Multiple: fits}, fits},
			{ranks.Options{PerMultiprocessor: each}, each * cores},
			{ranks.Options{PerMultiprocessor: each, Multiple: each * cores}, each * cores},
			{ranks.Options{Ranks: 1, Multiple: 1, AtMost: 5}, 1},
		} {
			if n, err := count(c.o); err != nil || n != c.want {
				t.Errorf("%+v gives %d ranks, %v, want %d", c.o, n, err, c.want)
			}
		}
		for multiple := 1; multiple <= fits; multiple++ {
			if n, err := count(ranks.Options{Multiple: multiple}); err != nil || n != fits/multiple*multiple {
				t.Errorf("a multiple of %d of which %d fit is %d, %v", multiple, fits, n, err)
			}
			if multiple == 5 {
				multiple = max(multiple, fits-2)
			}
		}
		n, err := count(ranks.Options{Multiple: fits + 1})
		if s.Devices[0].GoKernels { // any number fits
			if err != nil || n != fits+1 {
				t.Errorf("%d ranks, %v, want %d", n, err, fits+1)
			}
		} else if !errors.Is(err, ranks.ErrNoRoom) || !strings.Contains(err.Error(), fmt.Sprintf("%d ranks on ", fits+1)) {
			t.Errorf("%d ranks more than fit give %v", fits+1, err)
		}
		for _, o := range []ranks.Options{{Ranks: 1 << 62}, {PerMultiprocessor: 1 << 62}, {Multiple: 1 << 62}} {
			if n, err := count(o); !errors.Is(err, ranks.ErrNoRoom) {
				t.Errorf("%+v gives %d ranks, %v", o, n, err)
			}
		}
		for want, o := range map[string]ranks.Options{
			"7 ranks are no multiple of 3":        {Ranks: 7, Multiple: 3},
			"no multiple of 6 ranks is at most 5": {Multiple: 6, AtMost: 5},
			"options of a multiple of -2 ranks":   {Multiple: -2},
			"at most -1":                          {AtMost: -1},
		} {
			test.Says(t, test.ErrorOf(count(o)), want)
		}
	})
}
