package flags

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// PingPong measures the latency of a flag between two devices. A kernel stays resident on each of them. The two
// take turns: each stores into the memory of the other, and waits for a store into its own. Between a device and the
// host, a goroutine takes the place of a kernel, and both flags are in pinned host memory.
type PingPong struct {
	resources streams.Resources
	limit     time.Duration
	players   [2]*player
	base      uint64 // number of completed rounds
}

// player is the part of one device, or of the host.
type player struct {
	device *streams.Device // nil for the host
	stream *streams.Stream // nil for the host
	done   chan struct{}   // closed when the host has played
	other  *player
	flag   *streams.Memory // written by the other player
	took   *streams.Memory // pinned
	kernel *streams.Kernel
	arg    pingPongArgs // of the Go form; the CUDA form has its own
}

// NewPingPong prepares the kernels, and runs them once. The devices must reach each other; without b, the host is the
// other player. No kernel waits longer than limit.
func NewPingPong(c *kernels.Compiler, a, b *streams.Device, limit time.Duration) (*PingPong, error) {
	p := &PingPong{limit: limit}
	if err := p.open(c, [2]*streams.Device{a, b}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (r *PingPong) open(c *kernels.Compiler, devices [2]*streams.Device) error {
	for i, d := range devices {
		p := &player{device: d, took: r.resources.AllocPinned(devices[0], 8)}
		if d != nil {
			p.stream = r.resources.NewStream(d, streams.Normal)
		}
		if devices[1] == nil {
			p.flag = r.resources.AllocPinned(devices[0], lineBytes)
		} else {
			streams.Into(&r.resources, &p.flag)(streams.Upload(d, make([]byte, lineBytes)))
		}
		r.players[i] = p
	}
	if err := r.resources.Err(); err != nil {
		return err
	}
	if devices[1] == nil {
		for _, p := range r.players {
			clear(p.flag.Bytes())
		}
	}
	for i, p := range r.players {
		p.other = r.players[1-i]
		if err := makePlayer(c, r, p, p.other, i == 0); err != nil {
			return err
		}
	}
	// Drivers may do work at the first launch of a kernel that waits for other kernels.
	for _, p := range r.players {
		if err := errors.Join(p.launch(0, 0, 0), p.sync(r.limit)); err != nil {
			return err
		}
	}
	return nil
}

// makePlayer prepares the launch of one player.
func makePlayer(c *kernels.Compiler, r *PingPong, p, other *player, serves bool) error {
	arg := pingPongArgs{
		mine: p.flag.Address(), its: other.flag.Address(), limit: r.limit.Nanoseconds(), took: p.took.Address(),
	}
	if serves {
		arg.serves = 1
	}
	if p.arg = arg; p.device == nil {
		return nil
	}
	found, err := c.Load(p.device, latencyProgram(), "flag_ping_pong")
	if err != nil {
		return err
	}
	spec := streams.KernelSpec{
		Name: "flag ping-pong", Function: found[0], Uses: []streams.Span{p.flag.All(), p.took.All()},
		Reaches: []streams.Span{other.flag.All()},
		Grid:    [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Argument: launch.Argument(&arg),
		Run: func() { p.onHost(other) },
	}
	streams.Into(&r.resources, &p.kernel)(launch.New(p.device, spec))
	return r.resources.Err()
}

// launch queues the kernel of a player, or begins the turns of the host.
func (p *player) launch(base uint64, rounds, warm int64) error {
	arg := &p.arg
	if p.kernel != nil {
		if own := p.kernel.Argument(); own != nil {
			arg = &streams.View[pingPongArgs](own)[0]
		}
	}
	arg.base, arg.rounds, arg.warm = base, rounds, warm
	streams.View[int64](p.took.Bytes())[0] = 0
	if p.kernel != nil {
		return p.stream.Launch(p.kernel)
	}
	p.done = make(chan struct{})
	go func() {
		p.onHost(p.other)
		close(p.done)
	}()
	return nil
}

// sync waits until a player is done. The host is done at the latest after its limit.
func (p *player) sync(limit time.Duration) error {
	if p.done != nil {
		<-p.done
		return nil
	}
	return p.stream.Sync(limit)
}

// String names the player.
func (p *player) String() string {
	if p.device == nil {
		return "the host"
	}
	return "device " + p.device.String()
}

// Play passes the flag back and forth for the given number of rounds, after some warm-up rounds, and returns the
// mean time from one device to the other, by the clock of the first. It waits for both kernels. An error names the
// device that timed out and the one it waited for.
func (r *PingPong) Play(rounds int) (time.Duration, error) {
	const warm = 100
	if rounds < 1 {
		return 0, fmt.Errorf("flags: ping-pong: number of rounds must be at least 1, got %d", rounds)
	}
	base := r.base
	r.base += uint64(rounds + warm)
	for _, p := range r.players {
		if err := p.launch(base, int64(rounds+warm), warm); err != nil {
			return 0, err
		}
	}
	for _, p := range r.players {
		if err := p.sync(2*r.limit + time.Minute); err != nil {
			return 0, err
		}
	}
	for i, p := range r.players {
		if streams.View[int64](p.took.Bytes())[0] < 0 {
			return 0, fmt.Errorf("flags: %v timed out after %v waiting for a flag from %v", p, r.limit, r.players[1-i])
		}
	}
	took := streams.View[int64](r.players[0].took.Bytes())[0]
	return time.Duration(took) / time.Duration(2*rounds), nil
}

// onHost is the Go counterpart of kernel flag_ping_pong.
func (p *player) onHost(other *player) {
	var start time.Time
	took := &streams.View[int64](p.took.Bytes())[0]
	for i := int64(1); i <= p.arg.rounds; i++ {
		count := p.arg.base + uint64(i)
		if p.arg.serves == 1 {
			atomic.StoreUint64(word(other.flag, 0), count)
		}
		if !await(word(p.flag, 0), count, time.Duration(p.arg.limit)) {
			*took = -1
			return
		}
		if p.arg.serves == 0 {
			atomic.StoreUint64(word(other.flag, 0), count)
		}
		if i == p.arg.warm {
			start = time.Now()
		}
	}
	*took = time.Since(start).Nanoseconds()
}

// Close frees the memory. Closing twice is allowed.
func (r *PingPong) Close() error { return r.resources.Close() }
