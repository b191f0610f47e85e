package halo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/streams"
)

// Snapshot holds copies of fields in separate memory on their devices, so that another goroutine can read them while
// steps change the fields. Take and Close must not be called while the copies are used.
type Snapshot struct {
	fields    []*Field
	resources streams.Resources
}

// patience is the longest wait of one process for another in transfers of a snapshot, which may wait for files.
const patience = time.Hour

// NewSnapshot allocates copies of fields of one placement, with undefined content: see Take. If there is too little
// memory, the error is streams.ErrOutOfMemory, on all processes, and nothing is allocated. If several processes share
// the grid, all of them call NewSnapshot and Close.
func NewSnapshot(ctx context.Context, fields ...*Field) (*Snapshot, error) {
	if len(fields) == 0 {
		return nil, errors.New("halo: a snapshot must have at least one field")
	}
	var specs []Spec
	for _, f := range fields {
		if err := f.Usable(); err != nil {
			return nil, err
		}
		if f.Placement != fields[0].Placement {
			return nil, fmt.Errorf("halo: snapshot: field %q must have the placement of the others", f.Spec.Name)
		}
		specs = append(specs, f.Spec)
	}
	if err := live(ctx); err != nil {
		return nil, fields[0].Placement.Processes.Fail(err)
	}
	s, own := &Snapshot{}, *fields[0].Placement
	err := Fit(&own, 1, specs...)
	if err == nil {
		err = s.allocate(&own, fields)
	}
	if err = own.Agree(ctx, "allocate a snapshot", err, streams.ErrOutOfMemory); err == nil && !own.isDry() {
		own.Processes, err = own.Processes.Duplicate(ctx, patience)
		if err == nil {
			s.resources.Add(own.Processes)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// allocate allocates a copy of each field. All share their stages.
func (s *Snapshot) allocate(p *Placement, fields []*Field) error {
	shared := newStages(len(p.Subdomains))
	for _, like := range fields {
		f, err := newField(p, like.Spec, shared, like)
		if err != nil {
			return err
		}
		s.fields = append(s.fields, f)
		s.resources.Add(f)
	}
	return nil
}

// Take copies fields with the Specs and the placement of those of NewSnapshot, in their order and including ghosts, on
// all devices at once, and waits only for that. No queued work may write the fields.
func (s *Snapshot) Take(fields ...*Field) error {
	if len(fields) != len(s.fields) {
		return fmt.Errorf("halo: snapshot: must have %d fields, got %d", len(s.fields), len(fields))
	}
	return copyAll(s.fields, fields)
}

// Fields returns the copies, as fields of a placement whose processes are a duplicate of the group, see
// mpi.Processes.Duplicate: Gather and the like need no common order with calls of the steps.
func (s *Snapshot) Fields() []*Field { return s.fields }

// Close frees the copies.
func (s *Snapshot) Close() error { return s.resources.Close() }
