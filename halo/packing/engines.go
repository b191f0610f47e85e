package packing

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// engines are all but Auto, in the order in which they are shown. A new one has a file of its
// own and a line here; the tests of packing add one.
func engines() []engine {
	return []engine{copiesEngine, targetedEngine, transformEngine, bypassEngine, unitsEngine, treeEngine}
}

// Engines returns all but Auto.
func Engines() []Engine { return namesOf(engines()) }

// New makes a packer. Close frees it; its jobs are to be closed before.
func New(c *kernels.Compiler, d *streams.Device, o Options) (*Packer, error) {
	return newPacker(c, d, o, engines())
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

// job makes a task ready for an engine, or for the fastest.
func (p *Packer) job(e Engine, t *task) (*Job, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if e == Auto {
		return p.fastest(t)
	}
	return p.jobOf(e, t)
}
