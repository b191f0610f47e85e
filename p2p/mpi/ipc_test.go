//go:build unix

package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// environments are the variables of tests on CPU devices and on emulated GPUs, which are skipped where there are none.
var environments = []func(t *testing.T) []string{
	func(*testing.T) []string { return nil },
	func(t *testing.T) []string { return testdevices.Environment(t, 2) },
}

// Messages between processes of one host that map memory of each other, on CPU devices and on emulated GPUs.
func TestHostMessages(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for i, env := range environments {
			for j, tc := range []struct {
				program string
				ranks   []int
			}{{"mapped", []int{2, 3, 4}}, {"map errs", []int{3}}} {
				for _, ranks := range testdevices.Some(1, tc.ranks) {
					if testdevices.Turn(i+j, 1, 2) {
						t.Run(fmt.Sprintf("%s/gpus=%t/%d", tc.program, i > 0, ranks), func(t *testing.T) {
							in.Done(t, testmpi.Job{Program: tc.program, Ranks: ranks, Env: env(t)})
						})
					}
				}
			}
		}
	})
}

// A process that sends nothing, or ends, keeps no other waiting beyond the limit, and is named.
func TestLostHostMessages(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for i, env := range environments {
			if !testdevices.Turn(i, 2, 2) {
				continue
			}
			t.Run(fmt.Sprintf("gpus=%t", i > 0), func(t *testing.T) {
				in.Fails(t, testmpi.Job{Program: "map hangs", Ranks: 3, Env: env(t)}, "<rank 0 after ",
					"mpi: network ipc: waited ", "for message 0 of rank 2 on host ", "to reach 3, got 2")
				words, job := []string(nil), testmpi.Job{Program: "map ends", Ranks: 3, Env: env(t)}
				if in.Hydra { // other launchers may end all before any process notices
					job.Args = []string{"-disable-auto-cleanup"}
					words = []string{"<rank 0 after ", "mpi: no heartbeat from rank 2 on host "}
				}
				in.Fails(t, job, words...)
			})
		}
	})
}

// TryIPC finds memory that cannot be opened, and memory through which nothing arrives.
func TestTryIPC(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for name, tc := range map[string]struct {
			flags []string // of emulated GPUs; nil for CPU devices
			want  string
		}{
			"CPU devices":   {nil, "<nil>"},
			"GPUs":          {[]string{}, "<nil>"},
			"cannot open":   {[]string{cudafake.WithoutIPC}, "cuIpcOpenEventHandle: CUDA_ERROR"},
			"does not pass": {[]string{cudafake.LyingIPC}, "the bytes that arrive differ"},
		} {
			t.Run(name, func(t *testing.T) {
				var env []string
				if tc.flags != nil {
					env = testdevices.Environment(t, 2, tc.flags...)
				}
				r := in.Done(t, testmpi.Job{Program: "try ipc", Ranks: 2, Env: env})
				for line := range strings.Lines(r.Out) {
					if strings.HasPrefix(line, "tried: ") && !strings.Contains(line, tc.want) {
						t.Errorf("%q is missing:\n%s", tc.want, line)
					}
				}
			})
		}
	})
}

// tryIPC prints the result of a trial. Processes continue afterwards.
func tryIPC(p *mpi.Processes, devices []*streams.Device) error {
	fmt.Println("tried:", strings.ReplaceAll(fmt.Sprint(p.TryIPC(context.Background(), devices)), "\n", "; "))
	return errors.Join(together(p), p.Disconnect(), nothingHeld(devices))
}

func nothingHeld(devices []*streams.Device) error {
	for _, d := range devices {
		if held := d.Held(); held != (streams.Held{}) {
			return fmt.Errorf("%v holds %+v", d, held)
		}
	}
	return nil
}

// drawnMessages are messages between random processes and devices, the same on all.
func drawnMessages(p *mpi.Processes, devices []*streams.Device, seed uint64) (all []mpi.HostMessage) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range 1 + r.IntN(9) {
		m := mpi.HostMessage{From: r.IntN(p.Size()), Bytes: 1 + r.Int64N(5000), Get: r.IntN(2) == 0}
		m.To = (m.From + 1 + r.IntN(p.Size()-1)) % p.Size()
		at := [2]int{r.IntN(2), r.IntN(2)}
		switch p.Rank {
		case m.From:
			m.Device = devices[at[0]]
		case m.To:
			m.Device = devices[at[1]]
		}
		m.Name = fmt.Sprintf("message %d of %s", len(all), p.Name(m.From))
		all = append(all, m)
	}
	return all
}

// mailed sends each message some times, and compares what arrives.
func mailed(p *mpi.Processes, devices []*streams.Device, h *mpi.HostMessages, all []mpi.HostMessage, times int) (err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	group := streams.NewWorkerGroup(1<<10, 2*p.Limit())
	for turn := range times {
		for _, sends := range []bool{true, false} {
			for i, m := range all {
				if sends && m.From != p.Rank || !sends && m.To != p.Rank {
					continue
				}
				at, host := open.NewStream(m.Device, streams.Normal), open.AllocPinned(m.Device, m.Bytes)
				if err := open.Err(); err != nil {
					return err
				}
				want := make([]byte, m.Bytes)
				rand.NewChaCha8([32]byte{byte(turn), byte(i)}).Read(want)
				if sends {
					copy(host.Bytes(), want)
					s := h.Sender(i)
					if err := errors.Join(s.Ready(group, at), at.Copy(h.Span(i), host.All()), s.Send(at)); err != nil {
						return err
					}
					continue
				}
				r := h.Receiver(i)
				r.Expect(at)
				if err := errors.Join(r.Receive(group, at), at.Copy(host.All(), h.Span(i)), r.Done(at), at.Sync(p.Limit())); err != nil {
					return err
				}
				if !bytes.Equal(host.Bytes(), want) {
					return fmt.Errorf("%s: turn %d: wrong bytes", m.Name, turn)
				}
			}
		}
	}
	return nil
}

// mapped exchanges messages of several lists, and closes them in another order on each process.
func mapped(p *mpi.Processes, devices []*streams.Device) error {
	ctx := context.Background()
	for seed := range uint64(4) {
		var made []*mpi.HostMessages
		for i := range uint64(3) {
			all := drawnMessages(p, devices, 3*seed+i)
			h, err := p.NewHostMessages(ctx, all)
			if err == nil {
				err = mailed(p, devices, h, all, 5)
			}
			if err != nil {
				return err
			}
			made = append(made, h)
		}
		for i := range made {
			if err := made[(i+p.Rank)%len(made)].Close(); err != nil {
				return err
			}
		}
	}
	begin := time.Now()
	err := errors.Join(p.Disconnect(), nothingHeld(devices))
	if took := time.Since(begin); took > testLimit/2 {
		return fmt.Errorf("disconnected after %v", took)
	}
	names, _ := os.ReadDir("/dev/shm")
	if slices.ContainsFunc(names, func(e os.DirEntry) bool {
		info, err := e.Info()
		return err == nil && strings.HasPrefix(e.Name(), "halox-") && time.Since(info.ModTime()) > testLimit
	}) {
		return errors.New("files of shared memory are left")
	}
	return err
}

// mapErrs passes a closed device on rank 1: all get an error that names it, and continue.
func mapErrs(p *mpi.Processes, devices []*streams.Device) error {
	ctx := context.Background()
	m := []mpi.HostMessage{{From: 0, To: 1, Bytes: 100, Device: devices[1], Name: "a message"}}
	if p.Rank == 1 {
		if err := devices[1].Close(); err != nil {
			return err
		}
	}
	if _, err := p.NewHostMessages(ctx, m); err == nil || p.Rank != 1 && !strings.Contains(err.Error(), p.Name(1)) {
		return fmt.Errorf("a closed device: %v", err)
	}
	m[0].Device = devices[0]
	h, err := p.NewHostMessages(ctx, m)
	if err != nil {
		return err
	}
	return errors.Join(mailed(p, devices, h, m, 3), h.Close(), p.Disconnect())
}

// lastToFirst is a message from the last rank to the first.
func lastToFirst(p *mpi.Processes, devices []*streams.Device) (*mpi.HostMessages, []mpi.HostMessage, error) {
	last := p.Size() - 1
	m := []mpi.HostMessage{{From: last, To: 0, Bytes: 100, Device: devices[0], Name: "message 0 of " + p.Name(last)}}
	h, err := p.NewHostMessages(context.Background(), m)
	return h, m, err
}

// mapHangs lets rank 0 wait for a third message, of which the last rank sends two.
func mapHangs(p *mpi.Processes, devices []*streams.Device) error {
	h, m, err := lastToFirst(p, devices)
	times := 2
	if p.Rank == 0 {
		times = 3
	}
	if err == nil {
		err = mailed(p, devices, h, m, times)
	}
	if err == nil {
		<-p.Context().Done()
		err = context.Cause(p.Context())
	}
	return err
}

// mapEnds ends the last rank while rank 0 waits for a third message.
func mapEnds(p *mpi.Processes, devices []*streams.Device) error {
	if p.Rank == p.Size()-1 {
		h, m, err := lastToFirst(p, devices)
		if err == nil {
			err = mailed(p, devices, h, m, 2)
		}
		fmt.Println("ends:", err)
		os.Exit(7)
	}
	return mapHangs(p, devices)
}
