//go:build linux && cgo

package cuda_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
)

func TestRetainPrimarySetsTheFlags(t *testing.T) {
	r := newRig(t, 1)
	device := r.contexts[0].Device()
	for _, flags := range []cuda.SchedFlags{cuda.SchedSpin, cuda.SchedBlocking} {
		ctx := test.Must(device.RetainPrimary(flags))(t)
		if got := r.fake.PrimaryFlags(0); got != uint32(flags) {
			t.Errorf("flags are %d, want %d", got, flags)
		}
		test.Check(t, ctx.Release())
	}
}

func TestRetainPrimaryOfAnActiveContext(t *testing.T) {
	r := newRig(t, 1)
	r.fake.Fail("cuDevicePrimaryCtxSetFlags", int(cuda.CodePrimaryActive), 0, 1)
	test.Check(t, test.Must(r.contexts[0].Device().RetainPrimary(cuda.SchedSpin))(t).Release())
}

func TestReleaseTwiceGivesOneShareBack(t *testing.T) {
	r := newRig(t, 1)
	other := test.Must(r.contexts[0].Device().RetainPrimary(cuda.SchedAuto))(t)
	test.Check(t, other.Release())
	test.Check(t, other.Release())
	if n := r.fake.Live().Contexts; n != 1 {
		t.Errorf("%d shares left, want 1", n)
	}
	test.Check(t, r.contexts[0].Synchronize())
	test.Is(t, other.Synchronize(), cuda.CodeInvalidContext)
}

func TestEveryCallSetsItsContext(t *testing.T) {
	const devices, goroutines, rounds = 4, 32, 50
	r := newRig(t, devices)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range rounds {
				if err := useAll(r.contexts[(g+i)%devices]); err != nil {
					t.Errorf("goroutine %d, round %d: %v", g, i, err)
				}
			}
		})
	}
	group.Wait()
	if live := r.fake.Live(); live != (cudafake.Live{Contexts: devices}) {
		t.Errorf("left behind: %+v", live)
	}
}

// useAll makes, uses and gives up one of each thing, in calls that the fake
// driver refuses in any other context.
func useAll(ctx *cuda.Context) (err error) {
	stream, err1 := ctx.StreamCreate(-1)
	event, err2 := ctx.EventCreate(cuda.EventNoTiming)
	memory, err3 := ctx.MemAlloc(64)
	host, err4 := ctx.HostAlloc(64, 0)
	module, err5 := ctx.ModuleLoad(cudafake.Image(map[string]int{"k": 0}))
	_, err6 := ctx.ModuleFunction(module, "k")
	return errors.Join(err1, err2, err3, err4, err5, err6,
		ctx.MemsetD8Async(memory, 1, 64, stream),
		ctx.MemcpyDtoHAsync(host, memory, 64, stream),
		ctx.EventRecord(event, stream),
		ctx.StreamWaitEvent(stream, event),
		ctx.EventSynchronize(event),
		ctx.StreamSynchronize(stream),
		ctx.Synchronize(),
		ctx.EventDestroy(event),
		ctx.StreamDestroy(stream),
		ctx.ModuleUnload(module),
		ctx.HostFree(host),
		ctx.MemFree(memory))
}

func TestWrongContextIsRefused(t *testing.T) {
	r := newRig(t, 2)
	mine, other := r.contexts[0], r.contexts[1]
	stream, foreignStream := test.Must(mine.StreamCreate(0))(t), test.Must(other.StreamCreate(0))(t)
	event := test.Must(mine.EventCreate(0))(t)
	foreign := test.Must(other.MemAlloc(16))(t)
	launch := test.Must(cuda.NewLaunch(kernel(t, other, "k", 0), cuda.Dim3{X: 1, Y: 1, Z: 1}, cuda.Dim3{X: 1, Y: 1, Z: 1}, 0, nil))(t)
	defer launch.Free()
	for _, tc := range []struct {
		name string
		err  error
		want cuda.Code
	}{
		{"a stream", mine.StreamSynchronize(foreignStream), cuda.CodeInvalidHandle},
		{"an event on a stream", mine.EventRecord(event, foreignStream), cuda.CodeInvalidHandle},
		{"memory", mine.MemsetD8Async(foreign, 0, 16, stream), cuda.CodeInvalidContext},
		{"memory to free", mine.MemFree(foreign), cuda.CodeInvalidContext},
		{"a kernel", mine.Launch(launch, stream), cuda.CodeInvalidHandle},
		{"a peer copy's context", mine.MemcpyPeerAsync(foreign, mine, foreign, other, 16, stream), cuda.CodeInvalidContext},
		{"the default stream", mine.MemsetD8Async(foreign, 0, 16, 0), cuda.CodeInvalidHandle},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if !errors.Is(tc.err, tc.want) {
				t.Errorf("got %v, want %v", tc.err, tc.want)
			}
		})
	}
}

func TestADeadDeviceLeavesTheOthers(t *testing.T) {
	r := newRig(t, 2)
	r.fake.Kill(1, int(cuda.CodeIllegalAddress))
	err := r.contexts[1].Synchronize()
	if !cuda.IsSticky(err) {
		t.Errorf("got %v", err)
	}
	const want = "device 1: cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	test.Check(t, r.contexts[0].Synchronize())
}

func TestStreamPriorityRange(t *testing.T) {
	least, greatest, err := newRig(t, 1).contexts[0].StreamPriorityRange()
	if least != 0 || greatest != -5 || err != nil {
		t.Errorf("got %d, %d, %v", least, greatest, err)
	}
}
