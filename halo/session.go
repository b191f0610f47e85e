package halo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Session holds the open devices that share a grid, how they are linked, and a compiler
// for their kernels. A program that embeds halo starts with one. All of it can be had
// one by one from streams, p2p and kernels too.
type Session struct {
	Devices  []*streams.Device
	Links    *p2p.Links
	Compiler *kernels.Compiler
	platform *streams.Platform
}

// Open opens n devices of a backend, or, where n is 0, all GPUs or a host
// device a core. Backend "" is that of the GPUs where there are some, else host
// devices. It is an error, streams.ErrNoDriver, to want GPUs where there are none,
// and one to want more than there are.
//
// Every link is proven with data. Where there are several devices, it is measured
// what messages take over the links, so that plans choose the fastest paths: once,
// in a second or two on GPUs and 0.2 s on host devices, and kept in the user's
// cache. Where that fails, plans are made without. When the context ends, the measurement
// does, with the context's error; a proof of a link that is under way comes to its end.
//
// HALOX_CUDA, HALOX_NVRTC and HALOX_CACHE name other places for the driver, for
// NVRTC and for the cache.
func Open(ctx context.Context, backend streams.Backend, n int) (session *Session, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	made := &Session{Compiler: kernels.CompilerFromEnv()}
	if made.platform, err = platformFor(backend, n); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	have := len(made.platform.Devices())
	if n < 0 || n > have {
		return nil, fmt.Errorf("halo: %d devices were asked for; this machine has %d", n, have)
	}
	var ids []int
	for id := range n {
		ids = append(ids, id)
	}
	if made.Devices, err = made.platform.Open(ids...); err != nil {
		return nil, err
	}
	if err = made.link(ctx); err != nil {
		return nil, err
	}
	return made, nil
}

// link finds out how the devices are linked, and what messages take.
func (s *Session) link(ctx context.Context) (err error) {
	var topology p2p.Topology
	driver := ""
	if s.Devices[0].Backend == streams.CUDA {
		if nvml, err := p2p.OpenNVML(); err == nil { // without it the kinds of links stay unknown
			defer nvml.Close()
			topology, driver = nvml, nvml.DriverVersion()
		}
	}
	if s.Links, err = p2p.Discover(s.Devices, topology); err != nil || len(s.Devices) == 1 {
		return err
	}
	s.Links.Model, err = LinkModel(ctx, s.Devices, s.Links, s.Compiler, driver, "")
	if ctx.Err() != nil {
		return err
	}
	for _, d := range s.Devices {
		if d.Err() != nil {
			return err
		}
	}
	return nil // without a link model there are still paths
}

func platformFor(backend streams.Backend, n int) (*streams.Platform, error) {
	if backend != "" && backend != streams.CUDA && backend != streams.Host {
		return nil, fmt.Errorf("halo: no backend %q: %s, %s, or none for either", backend, streams.CUDA, streams.Host)
	}
	if backend != streams.Host {
		p, err := streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
		if err == nil || backend == streams.CUDA || !errors.Is(err, streams.ErrNoDriver) {
			return p, err
		}
	}
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return streams.HostPlatform(n), nil
}

// String says what the session is: "2 host devices", "4 GPUs (NVIDIA H200)".
func (s *Session) String() string {
	n, first := len(s.Devices), s.Devices[0]
	plural := "s"
	if n == 1 {
		plural = ""
	}
	if first.Backend == streams.Host {
		return fmt.Sprintf("%d host device%s", n, plural)
	}
	return fmt.Sprintf("%d GPU%s (%s)", n, plural, first.Name)
}

// Place cuts a grid of that many points along x, y and maybe z, see domain.NewGrid,
// into a subdomain a device, by domain.AutoParts for ghosts of width w, the widest of
// the fields. It is an error if the grid is too small for so many devices.
func (s *Session) Place(size []int, periodic [3]bool, w domain.Radius) (*Placement, error) {
	g, err := domain.NewGrid(size, periodic)
	if err != nil {
		return nil, err
	}
	parts, err := domain.AutoParts(g, len(s.Devices), w)
	if err != nil {
		return nil, fmt.Errorf("halo: %v: %w: open fewer devices or take a larger grid", s, err)
	}
	cut, err := domain.Decompose(g, parts)
	if err != nil {
		return nil, err
	}
	return Place(cut, s.Devices)
}

// NewExchanger plans the exchange of the ghosts of fields of one placement
// together, over the fastest paths, and makes it ready. Close frees it. NewPlan with
// the session's Links and p2p.Auto gives the plan itself.
func (s *Session) NewExchanger(fields ...*Field) (*Exchanger, error) {
	if len(fields) == 0 {
		return nil, fmt.Errorf("halo: an exchange of no field")
	}
	var specs []Spec
	for _, f := range fields {
		if err := f.Usable(); err != nil {
			return nil, err
		}
		specs = append(specs, f.Spec)
	}
	plan, err := NewPlan(fields[0].Placement, s.Links, p2p.Auto, specs...)
	if err != nil {
		return nil, err
	}
	return NewExchanger(plan, s.Compiler, fields...)
}

// Close closes the devices, with all that was made on them: fields, exchangers and
// streams need no Close before.
func (s *Session) Close() error {
	return errors.Join(streams.CloseAll(s.Devices), s.platform.Close())
}

// Streams is a stream for every subdomain of a placement, by rank, as Start and
// Wait take them.
type Streams []*streams.Stream

// NewStreams makes a stream for every subdomain, on its device.
func (p *Placement) NewStreams() (Streams, error) {
	var at Streams
	for _, d := range p.Devices {
		s, err := d.NewStream(streams.Normal)
		if err != nil {
			return nil, errors.Join(err, at.Close())
		}
		at = append(at, s)
	}
	return at, nil
}

// Launch queues a kernel on every stream, by rank, and nothing where it is nil.
func (at Streams) Launch(byRank []*streams.Kernel) error {
	if len(byRank) != len(at) {
		return fmt.Errorf("halo: %d kernels for %d subdomains", len(byRank), len(at))
	}
	for rank, k := range byRank {
		if k == nil {
			continue
		}
		if err := at[rank].Launch(k); err != nil {
			return err
		}
	}
	return nil
}

// Sync makes the host wait until every stream has done all that was queued, for
// at most limit each.
func (at Streams) Sync(limit time.Duration) error {
	for _, s := range at {
		if err := s.Sync(limit); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the streams.
func (at Streams) Close() error {
	var errs []error
	for _, s := range at {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
