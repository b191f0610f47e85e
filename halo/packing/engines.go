package packing

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// engines are all engines except Auto, in display order. A new engine has its own file and a line here; the
// tests of packing add one.
func engines() []engine {
	return []engine{copiesEngine, targetedEngine, transformEngine, bypassEngine, unitsEngine, treeEngine}
}

// Engines returns all engines except Auto.
func Engines() []Engine { return namesOf(engines()) }

// New makes a packer. Close frees it; close its jobs first.
func New(c *kernels.Compiler, d *streams.Device, o Options) (*Packer, error) {
	return newPacker(c, d, o, engines())
}

// Pack prepares a job that gathers the message into the first bytes of dst. dst is memory of the packer's
// device, of a peer that it can access, or pinned host memory. src is memory of its device. If the engine
// does not support the layout, the error is ErrUnsuited.
func (p *Packer) Pack(e Engine, dst streams.Span, src Place, c *MessageLayout) (*Job, error) {
	return p.job(e, &task{message: c, packed: dst, place: src})
}

// Unpack prepares a job that scatters the first bytes of src to the message's place in dst. The message must
// not name a byte twice. The memory is as for Pack.
func (p *Packer) Unpack(e Engine, dst Place, src streams.Span, c *MessageLayout) (*Job, error) {
	return p.job(e, &task{message: c, packed: src, place: dst, unpack: true})
}

// job prepares a task for an engine, or for the fastest.
func (p *Packer) job(e Engine, t *task) (*Job, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if e == Auto {
		return p.fastest(t)
	}
	return p.jobOf(e, t)
}
