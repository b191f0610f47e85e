package halo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Session holds open devices, their links, and a compiler for their kernels. Programs that embed halo, like
// the halox command, start by opening one. The packages streams, p2p and kernels provide the same parts
// separately.
//
// Its methods may be called from any goroutine, except if processes share grids: then all processes make the
// same calls in the same order. Close returns an error during other methods and during runs on the session's
// devices.
type Session struct {
	Backend  streams.Backend   // backend of all devices
	Devices  []*streams.Device // in the order of Devices.IDs, or of their ids
	Links    *p2p.Links        // between all devices; Model is set by Measure
	Compiler *kernels.Compiler // compiler of the session's kernels
	Note     string            // a message for the user if no GPU was found; otherwise empty
	NoGPU    error             // the reason, if no GPU was found; otherwise nil

	asked    Devices
	counts   []int          // number of devices by process; nil for a single process
	trials   []NetworkTrial // known trials of networks to other processes
	platform *streams.Platform
	nvml     *p2p.NVML // nil on CPU devices, and if NVML does not start
	endNVML  func() error
}

// usable returns an error if the session is nil or closed.
func (s *Session) usable() error {
	release, err := s.hold()
	if err == nil {
		release()
	}
	return err
}

// hold keeps the devices open until release is called. Its error is that of usable.
func (s *Session) hold() (release func(), err error) {
	if s == nil {
		return nil, errors.New("halo: the session is nil: see Open")
	}
	if err := streams.Hold(s.Devices); err != nil {
		return nil, fmt.Errorf("halo: the session is closed, and so is everything on its devices: %w", err)
	}
	return func() { streams.Release(s.Devices) }, nil
}

// Suits returns an error unless the subdomains of this process are on devices of the session.
func (s *Session) Suits(p *Placement) error {
	if err := errors.Join(s.usable(), p.usable()); err != nil {
		return err
	}
	for rank, d := range p.Devices {
		if d != nil && !slices.Contains(s.Devices, d.Real()) {
			return fmt.Errorf("halo: subdomain %d must be on a device of the session, got %v of another", rank, d)
		}
	}
	return nil
}

// Open opens the requested devices, discovers their links, and verifies every link with data. An *OptionError
// names the device option that is invalid or unavailable; it wraps streams.ErrNoDriver if GPUs are requested
// and there are none. Measure times messages over the links when a choice depends on it.
//
// The variables HALOX_CUDA, HALOX_NVRTC and HALOX_CACHE override the paths of the driver, of NVRTC and of the
// cache. It is an error if HALOX_CUDA is set and the driver is not there.
//
// When the context ends, Open returns its error before opening the devices (which it does in parallel) or
// before checking the next link. It abandons a driver call that does not return.
//
// If processes share grids, all of them call it. If one cannot open its devices, all return an error.
func Open(ctx context.Context, want Devices) (session *Session, err error) {
	want.Processes = want.Processes.OrAlone()
	s := &Session{asked: want, Compiler: kernels.CompilerFromEnv()}
	if err = errors.Join(want.check(), live(ctx)); err == nil {
		s.platform, s.NoGPU, err = want.platform(ctx)
		if s.NoGPU != nil && err == nil {
			s.Note = "No GPU found; running on the CPU."
		}
	}
	defer func() {
		if err != nil && s.platform != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	var ids []int
	if err == nil {
		s.Backend = s.platform.Devices()[0].Backend
		ids, err = want.choose(s.platform.Devices())
	}
	if err = want.agree(ctx, "find devices", err); err != nil {
		return nil, err
	}
	err = want.agree(ctx, "open devices", s.openShare(ctx, ids))
	if err != nil || want.Processes.IsAlone() {
		return s, err
	}
	if s.counts, err = want.count(ctx, len(s.Devices)); err != nil {
		return s, err
	}
	s.trials, err = s.networks().choose(ctx, want.Network)
	for _, t := range s.trials {
		if within, _ := want.Processes.Used(); t.Network == mpi.IPC && t.Why != "" && within != mpi.IPC {
			s.Note = strings.TrimSpace(fmt.Sprintf(
				"%s\nProcesses of one host do not map each other's memory, and use network %s: %s", s.Note, within, t.Why))
		}
	}
	return s, err
}

// networks returns the networks between the devices of the processes that share grids.
func (s *Session) networks() networks {
	return networks{s.asked.Processes, s.Devices, s.DriverVersion()}
}

// openShare opens the devices of this process and verifies the links between them.
func (s *Session) openShare(ctx context.Context, ids []int) (err error) {
	if !s.asked.Processes.IsAlone() {
		if ids, err = s.asked.share(ctx, s.platform.Devices(), ids); err != nil {
			return err
		}
	}
	if err := s.open(ctx, ids); err != nil {
		return err
	}
	var topology p2p.Topology // if empty, the kinds of links are unknown
	if s.nvml != nil {
		topology = s.nvml
	}
	s.Links, err = p2p.Discover(ctx, s.Devices, topology)
	return err
}

// open opens the devices and, in parallel, NVML.
func (s *Session) open(ctx context.Context, ids []int) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("halo: open the devices: %w", err)
	}
	var meanwhile sync.WaitGroup
	if !s.platform.Devices()[0].GoKernels {
		s.Compiler.Prepare()
	}
	if s.platform.Devices()[0].PCIBusID != "" {
		meanwhile.Go(func() {
			if nvml, err := p2p.OpenNVML(); err == nil {
				s.nvml, s.endNVML = nvml, sync.OnceValue(nvml.Close)
			}
		})
	}
	s.Devices, err = s.platform.Open(ids...)
	meanwhile.Wait()
	return err
}

// Measure sets Links.Model, the message times over the links, by which plans choose the fastest paths, unless
// it is set. It reads the model from the user's cache, or measures it, in one or two seconds on GPUs and 0.2
// s on CPU devices, and saves it there. Cut and NewExchanger call it if a choice depends on it. The
// measurement stops when the context ends.
func (s *Session) Measure(ctx context.Context) error {
	release, err := s.hold()
	if err != nil {
		return err
	}
	defer release()
	measuring.Lock()
	defer measuring.Unlock()
	if s.Links.Model != nil {
		return nil
	}
	model, err := LinkModel(ctx, s.Devices, s.Links, s.Compiler, s.DriverVersion(), "")
	if err != nil {
		return err
	}
	s.Links.Model = model
	return nil
}

// measuring is held while links are measured: concurrent measurements would disturb each other.
var measuring sync.Mutex

// DriverVersion returns the version of the GPU driver, "" if unknown.
func (s *Session) DriverVersion() string {
	if s == nil || s.nvml == nil {
		return ""
	}
	return s.nvml.DriverVersion()
}

// CUDAVersion returns the newest CUDA version that the driver supports, such as "13.0"; "" for CPU devices.
func (s *Session) CUDAVersion() string {
	if s == nil {
		return ""
	}
	return s.platform.Version()
}

// MaxClocks returns the highest core and memory clocks of a device, in MHz. ok is false if they are unknown.
func (s *Session) MaxClocks(d *streams.Device) (cores, memory int, ok bool) {
	if s == nil || s.nvml == nil {
		return 0, 0, false
	}
	cores, memory, err := s.nvml.MaxClocks(d.PCIBusID)
	return cores, memory, err == nil
}

// String describes the session, such as "2 CPU devices" or "4 GPUs (NVIDIA H200)"; "no session" for nil.
func (s *Session) String() string {
	if s == nil || len(s.Devices) == 0 {
		return "no session"
	}
	n, first := len(s.Devices), s.Devices[0]
	plural := "s"
	if n == 1 {
		plural = ""
	}
	if first.HostMemory { // CPU devices are identical
		return fmt.Sprintf("%d %s%s", n, first.Noun, plural)
	}
	return fmt.Sprintf("%d %s%s (%s)", n, first.Noun, plural, first.Name)
}

// NewExchanger plans and prepares the exchange of the ghosts of fields of one placement together, over the
// path of the placement or, if that is empty, the fastest paths. NewPlan with the session's Links gives
// access to the plan and to other paths. If processes share grids, all of them call it; if one fails, all
// return an error. Close frees the buffers.
func (s *Session) NewExchanger(ctx context.Context, fields ...*Field) (*Exchanger, error) {
	release, err := s.hold()
	if err != nil {
		return nil, err
	}
	defer release()
	plan, err := s.planOf(ctx, fields)
	if err = s.asked.agree(ctx, "plan an exchange", err); err != nil {
		return nil, err
	}
	return NewExchanger(plan, s.Compiler, fields...)
}

// planOf plans the exchange of the fields.
func (s *Session) planOf(ctx context.Context, fields []*Field) (*Plan, error) {
	if err := live(ctx); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("halo: an exchange must have at least one field")
	}
	var specs []Spec
	for _, f := range fields {
		if err := f.Usable(); err != nil {
			return nil, err
		}
		specs = append(specs, f.Spec)
	}
	place := fields[0].Placement
	if err := s.Suits(place); err != nil {
		return nil, err
	}
	if place.wanted(p2p.Auto) == p2p.Auto && place.crosses() {
		if err := s.Measure(ctx); err != nil {
			return nil, err
		}
	}
	return NewPlan(place, s.Links, p2p.Auto, specs...)
}

// Close closes the devices and everything allocated on them: fields, exchangers and streams need no Close before. It
// cancels compilations in progress, and does nothing for a nil or closed session. During another call of the session,
// or a run on its devices, it returns an error and the session stays open.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	if err := streams.Idle(s.Devices); err != nil {
		return fmt.Errorf("halo: the session is in use: %w", err)
	}
	var ended error // of NVML, which shuts down in parallel
	var meanwhile sync.WaitGroup
	if s.endNVML != nil {
		meanwhile.Go(func() { ended = s.endNVML() })
	}
	var err error
	if !s.asked.Processes.IsAlone() { // queued work may use memory of other processes
		err = errors.Join(streams.CloseStreams(s.Devices), s.asked.Processes.Disconnect())
	}
	err = errors.Join(err, streams.CloseAll(s.Devices))
	if !errors.Is(err, guard.ErrBusy) { // no device was held in the meantime
		err = errors.Join(err, s.Compiler.Close(), s.platform.Close())
	}
	meanwhile.Wait()
	return errors.Join(err, ended)
}

// WithProcesses returns a session that shares grids with the given processes, which all call it, or with none for a
// nil group. It uses the devices and links of s, which stays unchanged; close only s.
func (s *Session) WithProcesses(ctx context.Context, processes *mpi.Processes) (*Session, error) {
	release, err := s.hold()
	if err != nil {
		return nil, err
	}
	defer release()
	t := *s
	t.asked.Processes, t.counts = processes.OrAlone(), nil
	switch {
	case processes.IsAlone():
		return &t, nil
	case ctx == nil:
		return nil, processes.Fail(errNoContext)
	}
	if t.counts, err = t.asked.count(ctx, len(s.Devices)); err != nil || s.asked.Processes.IsAlone() {
		return &t, err
	}
	return &t, t.networks().follow(ctx, s.asked.Processes)
}

// Counts returns the number of devices of each process, by rank; one number if no processes share grids.
func (s *Session) Counts() []int {
	if s.counts == nil {
		return []int{len(s.Devices)}
	}
	return slices.Clone(s.counts)
}
