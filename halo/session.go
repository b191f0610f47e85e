package halo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Session holds the open devices that share grids, how they are linked, and a compiler
// for their kernels. A program that embeds halo starts with one, as the command line
// does. All of it can be had one by one from streams, p2p and kernels too.
//
// Its methods may be called from any goroutine, except where processes share grids: these make the same calls in the
// same order. Close returns an error during other methods and during runs on the session's devices.
type Session struct {
	Backend  streams.Backend
	Devices  []*streams.Device // in the order of their ids, or of those asked for
	Links    *p2p.Links        // between all of them; with a Model once that was measured
	Compiler *kernels.Compiler
	Note     string // a message for the user if no GPU was found; otherwise empty
	NoGPU    error  // the reason, if no GPU was found; otherwise nil

	asked    Devices
	counts   []int          // of devices, by process; nil where this one is alone
	trials   []NetworkTrial // of networks to other processes, as far as they are known
	platform *streams.Platform
	nvml     *p2p.NVML // nil on host devices and where NVML does not start
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

// hold keeps the devices open until release is called. The error is that of usable.
func (s *Session) hold() (release func(), err error) {
	if s == nil {
		return nil, errors.New("halo: the session is nil: see Open")
	}
	if err := streams.Hold(s.Devices); err != nil {
		return nil, fmt.Errorf("halo: the session is closed, and with it all that was made on its devices: %w", err)
	}
	return func() { streams.Release(s.Devices) }, nil
}

// Suits returns an error unless the subdomains of this process lie on devices of the session.
func (s *Session) Suits(p *Placement) error {
	if err := errors.Join(s.usable(), p.usable()); err != nil {
		return err
	}
	for rank, d := range p.Devices {
		if d != nil && !slices.Contains(s.Devices, d.Real()) {
			return fmt.Errorf("halo: subdomain %d lies on %v of another session", rank, d)
		}
	}
	return nil
}

// Open opens the devices that are wanted, discovers how they are linked, and proves
// every link with data. An *OptionError says what of the devices cannot be had; it is
// also streams.ErrNoDriver where GPUs are wanted and there are none. What messages take
// over the links is measured when a choice depends on it, see Measure.
//
// The variables HALOX_CUDA, HALOX_NVRTC and HALOX_CACHE name other places for the driver,
// for NVRTC and for the cache. It is an error if HALOX_CUDA is set and the driver is not
// there.
//
// When the context ends, Open returns its error before it opens the devices, which it does
// side by side, or before the next link. A driver that does not come back is not waited for.
//
// Where processes share grids, all call it. Where one cannot open its devices, all return an error.
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
		ids, err = want.choose(s.Backend, len(s.platform.Devices()))
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
	return s, err
}

// networks returns those between the devices of the processes that share grids.
func (s *Session) networks() networks {
	return networks{s.asked.Processes, s.Devices, s.DriverVersion()}
}

// openShare opens the devices of this process, and proves the links between them.
func (s *Session) openShare(ctx context.Context, ids []int) (err error) {
	if !s.asked.Processes.IsAlone() {
		if ids, err = s.asked.share(ctx, s.platform.Devices(), ids); err != nil {
			return err
		}
	}
	if err := s.open(ctx, ids); err != nil {
		return err
	}
	var topology p2p.Topology // without it the kinds of links stay unknown
	if s.nvml != nil {
		topology = s.nvml
	}
	s.Links, err = p2p.Discover(ctx, s.Devices, topology)
	return err
}

// open opens the devices and, meanwhile, what knows GPUs beside their driver.
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

// Measure finds out what messages take over the links, unless it is known: it sets
// Links.Model, by which plans choose the fastest paths. That is read from the user's
// cache, or measured, in a second or two on GPUs and 0.2 s on host devices, and kept
// there. Cut and NewExchanger measure by themselves where a choice depends on it. When
// the context ends, so does the measurement.
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

// measuring is held while links are measured: two measurements at once would disturb each other.
var measuring sync.Mutex

// DriverVersion returns the version of the GPUs' driver, "" where that is not known.
func (s *Session) DriverVersion() string {
	if s == nil || s.nvml == nil {
		return ""
	}
	return s.nvml.DriverVersion()
}

// CUDAVersion returns the newest version of CUDA that the driver supports, as "13.0"; ""
// for host devices.
func (s *Session) CUDAVersion() string {
	if s == nil {
		return ""
	}
	return s.platform.Version()
}

// MaxClocks returns the highest clocks of a device's cores and of its memory, in MHz. ok
// is false where they are not known.
func (s *Session) MaxClocks(d *streams.Device) (cores, memory int, ok bool) {
	if s == nil || s.nvml == nil {
		return 0, 0, false
	}
	cores, memory, err := s.nvml.MaxClocks(d.PCIBusID)
	return cores, memory, err == nil
}

// String says what the session is: "2 host devices", "4 GPUs (NVIDIA H200)"; "no session" of nil.
func (s *Session) String() string {
	if s == nil || len(s.Devices) == 0 {
		return "no session"
	}
	n, first := len(s.Devices), s.Devices[0]
	plural := "s"
	if n == 1 {
		plural = ""
	}
	if first.HostMemory { // all are alike
		return fmt.Sprintf("%d %s%s", n, first.Noun, plural)
	}
	return fmt.Sprintf("%d %s%s (%s)", n, first.Noun, plural, first.Name)
}

// NewExchanger plans the exchange of the ghosts of fields of one placement
// together, over the path of the placement or, where it has none, the fastest ones, and makes it
// ready. Close frees it. NewPlan with the session's Links gives the plan itself, and takes other
// paths. Where processes share grids all call it, and where one cannot plan it, all return an error.
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
		return nil, fmt.Errorf("halo: an exchange of no field")
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
// does nothing for a nil or closed session. During another call of the session, or a run on its devices, it returns an
// error and the session stays open.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	if err := streams.Idle(s.Devices); err != nil {
		return fmt.Errorf("halo: the session is in use: %w", err)
	}
	var ended error // of NVML, which ends meanwhile
	var meanwhile sync.WaitGroup
	if s.endNVML != nil {
		meanwhile.Go(func() { ended = s.endNVML() })
	}
	err := errors.Join(s.asked.Processes.Disconnect(), streams.CloseAll(s.Devices))
	if !errors.Is(err, guard.ErrBusy) { // no device has been held since
		err = errors.Join(err, s.platform.Close())
	}
	meanwhile.Wait()
	return errors.Join(err, ended)
}

// Among returns the session for others to share grids with: for the processes that are given, which all call it, or for
// this process alone where there are none. Devices and links are the session's, which stays as it was; only that one is
// closed.
func (s *Session) Among(ctx context.Context, processes *mpi.Processes) (*Session, error) {
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

// Counts returns how many devices each process has, by rank; of one where no processes share grids.
func (s *Session) Counts() []int {
	if s.counts == nil {
		return []int{len(s.Devices)}
	}
	return slices.Clone(s.counts)
}
