package packing

import (
	"errors"
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Options say how the engines work. The zero value lets each do as suits it.
type Options struct {
	Blocks    int          // thread blocks that a kernel may take at most; 0 for as many as suit
	UnitBytes int          // of a work unit: 1024, 2048 or 4096; 0 for what suits (units)
	Loop      kernels.Loop // what a thread copies one after the other (targeted, transform)
	Scan      kernels.Scan // how prefix sums are made (bypass)
	Sums      kernels.Sums // how they lie in shared memory (bypass)
	Lanes     int          // threads along a block, a power of two up to 256; 0 for what suits (bypass, targeted of blocks of one length)
	Pinned    bool         // the list of blocks stays in pinned host memory (bypass)
	Primitive bool         // a thread moves one primitive, not a wide word (tree)
	Cache     string       // folder of the cache, for what Auto measures; where empty the one that HALOX_CACHE names, else the user's
	// Predict has Auto take the engine that a model, fitted to what was measured before,
	// says is fastest, and measure only where the model cannot tell. It is for programs
	// that make many layouts and use each a few times, as adaptive meshes do.
	Predict bool
}

// strided and listed are the options of the kernels.
func (o Options) strided() kernels.StridedOptions {
	return kernels.StridedOptions{MaxBlocks: o.Blocks, Loop: o.Loop}
}

func (o Options) listed(equal bool) kernels.BlockOptions {
	return kernels.BlockOptions{Equal: equal, Pinned: o.Pinned, Scan: o.Scan, Sums: o.Sums, Lanes: o.Lanes, MaxBlocks: o.Blocks}
}

// Packer makes jobs for one device. What it puts on the device for a layout, lists of
// blocks and trees, it keeps until it is closed, and uses for all jobs with that layout.
type Packer struct {
	resources streams.Resources
	device    *streams.Device
	options   Options
	compiler  *kernels.Compiler
	copier    *kernels.BoxCopier
	blocks    *kernels.BlockPacker
	units     *kernels.UnitPacker
	trees     *kernels.TreePacker
	layouts   layoutCache
	choices   tuningCache
}

// New makes a packer. Close frees it; its jobs are to be closed before.
func New(c *kernels.Compiler, d *streams.Device, o Options) (p *Packer, err error) {
	made := &Packer{device: d, options: o, compiler: c}
	made.choices.open(o.Cache, d)
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if made.copier, err = c.NewBoxCopier(d); err != nil {
		return nil, err
	}
	if made.blocks, err = c.NewBlockPacker(d); err != nil {
		return nil, err
	}
	if made.units, err = c.NewUnitPacker(d); err != nil {
		return nil, err
	}
	made.resources.Add(made.units)
	if made.trees, err = c.NewTreePacker(d); err != nil {
		return nil, err
	}
	return made, nil
}

// Job packs or unpacks one message at one place, any number of times.
type Job struct {
	resources streams.Resources
	Engine    Engine // never Auto
	Why       string // why Auto took it: what was measured or predicted
	queue     func(s *streams.Stream) error
	most      int // operations that it queues, where they are more than two
}

// operations returns how many operations the job queues on a stream at most.
func (j *Job) operations() int { return max(2, j.most) }

// Queue queues the work on a stream of the packer's device.
func (j *Job) Queue(s *streams.Stream) error {
	if j.queue == nil {
		return nil
	}
	return j.queue(s)
}

// launch makes a job of one kernel.
func (j *Job) launch(k *streams.Kernel, err error) error {
	if err != nil {
		return err
	}
	j.resources.Add(k)
	j.queue = func(s *streams.Stream) error { return s.Launch(k) }
	return nil
}

// Pack makes a job ready that gathers the message into the first bytes of dst, which is
// memory of the packer's device, of a peer that it reaches, or pinned host memory. src is
// memory of its device. An engine that cannot do it returns ErrUnsuited.
func (p *Packer) Pack(e Engine, dst streams.Span, src Place, c *MessageLayout) (*Job, error) {
	return p.job(e, &task{message: c, packed: dst, place: src})
}

// Unpack makes a job ready that scatters the first bytes of src over the message's place
// in dst. The message must not touch a byte twice. The memory is as for Pack.
func (p *Packer) Unpack(e Engine, dst Place, src streams.Span, c *MessageLayout) (*Job, error) {
	return p.job(e, &task{message: c, packed: src, place: dst, unpack: true})
}

// job makes a task ready for an engine.
func (p *Packer) job(e Engine, t *task) (*Job, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if e == Auto {
		return p.fastest(t)
	}
	make, ok := map[Engine]func(*Job, *task) error{
		Copies: p.copies, Targeted: p.targeted, Transform: p.transform, Bypass: p.bypass, Units: p.inUnits, Tree: p.alongTree,
	}[e]
	if !ok {
		return nil, fmt.Errorf("packing: no engine %q: %v or auto", e, Engines())
	}
	j := &Job{Engine: e}
	if t.message.Layout.Size() == 0 {
		return j, nil
	}
	if err := make(j, t); err != nil {
		return nil, errors.Join(fmt.Errorf("packing: %s by %s: %w", t.name(), e, err), j.Close())
	}
	return j, nil
}

// Close frees what it holds. Closing twice is no error.
func (j *Job) Close() error { return j.resources.Close() }

// Close frees what it holds. Closing twice is no error.
func (p *Packer) Close() error { return p.resources.Close() }
