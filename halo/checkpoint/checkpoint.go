package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/zarr"
	"github.com/halox/halox/p2p/mpi"
)

// Checkpoint is a whole checkpoint.
type Checkpoint struct {
	Path string // of its folder
	Manifest
}

// ErrNone is the error of Find if there is no complete checkpoint.
var ErrNone = errors.New("there is no complete checkpoint")

// Find returns the newest checkpoint in a folder of which all bytes are right, and says why newer ones are rejected.
// The folder may be a checkpoint itself. It reads their files once. All processes that share grids call it and get the
// same result: each reads a part of the files. Without other processes the group is nil.
func Find(ctx context.Context, processes *mpi.Processes, folder string) (c *Checkpoint, rejected []error, err error) {
	p := processes.OrAlone()
	var paths []string
	if p.Rank == 0 {
		var found []Entry
		if found, err = List(folder); errors.Is(err, fs.ErrNotExist) {
			err = nil // there is none
		}
		for _, e := range found {
			paths = append(paths, e.Path)
		}
	}
	if err = p.Agree(ctx, "list checkpoints", err); err != nil {
		return nil, nil, err
	}
	if paths, err = mpi.Broadcast(ctx, p, "paths of checkpoints", paths, 0); err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		c, err := Open(path)
		if err == nil {
			err = c.verify(ctx, p)
		}
		all, failed := mpi.Gather(ctx, p, "verify "+path, text(err))
		switch {
		case failed != nil:
			return nil, rejected, failed
		case ctx.Err() != nil:
			return nil, rejected, ctx.Err()
		}
		reason := first(all)
		if reason == nil {
			return c, rejected, nil
		}
		rejected = append(rejected, reason)
	}
	return nil, rejected, fmt.Errorf("checkpoint: %s: %w", folder, ErrNone)
}

// text returns the text of an error, "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// first returns the first text that is not empty as an error.
func first(texts []string) error {
	for _, t := range texts {
		if t != "" {
			return errors.New(t)
		}
	}
	return nil
}

// Open opens the checkpoint at path, such as FOLDER/step-000000010000. It returns an error, which names the file,
// unless the checkpoint is whole: all files of its manifest are there, with the right sizes. It compares the checksums
// of metadata, but not of values.
func Open(path string) (*Checkpoint, error) {
	e := inspect(path)
	if e.Err != nil {
		return nil, e.Err
	}
	return &Checkpoint{e.Path, e.Manifest}, nil
}

// Verify compares the checksums of all files, and returns the first that is wrong as an error.
func (c *Checkpoint) Verify(ctx context.Context) error { return c.verify(ctx, mpi.Alone()) }

// verify compares the checksums of the part of the files of this process.
func (c *Checkpoint) verify(ctx context.Context, p *mpi.Processes) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(busyReaders)
	for i, f := range c.Files {
		if i%p.Size() != p.Rank {
			continue
		}
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := verifyFile(c.Path, f); err != nil {
				return fmt.Errorf("checkpoint: %s: %w", c.Path, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// busyReaders is how many files are read at once.
var busyReaders = min(4, runtime.GOMAXPROCS(0))

// Attributes sets a value to the attributes of the checkpoint, by package json.
func (c *Checkpoint) Attributes(into any) error {
	text, err := zarr.ReadGroup(c.Path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %s: attributes: %w", c.Path, err)
	}
	return nil
}

// ArrayInfo describes a stored array. The components of a point are consecutive along x.
type ArrayInfo struct {
	Name       string `json:"name"`       // as it was given; NAME.0 and so on for components that are arrays
	Size       []int  `json:"size"`       // values along each axis, x first
	Element    string `json:"element"`    // of the field
	Components int    `json:"components"` // per point
	Zstd       bool   `json:"zstd"`       // whether it is compressed
	Bytes      int64  `json:"bytes"`      // of its files
}

// Arrays describes the stored arrays. A field that is a struct of arrays has one for each component.
func (c *Checkpoint) Arrays() (all []ArrayInfo, err error) {
	at := map[string]int{}
	for _, f := range c.Files {
		name, _, ok := strings.Cut(f.Name, "/")
		if !ok {
			continue
		}
		if _, ok := at[name]; !ok {
			a, err := zarr.Open(filepath.Join(c.Path, name))
			var stored layout
			if err == nil {
				err = json.Unmarshal(a.Attributes, &stored)
			}
			if err != nil {
				return nil, fmt.Errorf("checkpoint: %s: array %s: %w", c.Path, name, err)
			}
			at[name] = len(all)
			all = append(all, ArrayInfo{name, a.Size, stored.Element, stored.Components, a.Zstd != 0, 0})
		}
		all[at[name]].Bytes += f.Size
	}
	return all, nil
}

// Read sets the owned points of a field to those of an array with its grid, element and components, whatever the
// decomposition and the ghosts were. Each process reads the points that it owns. If processes share the grid, all of
// them call it, and all fail if one does. Ghosts are updated by the next exchange. No queued work may use the field.
func (c *Checkpoint) Read(ctx context.Context, name string, f *halo.Field) error {
	a := Array{name, f}
	err := check([]Array{a})
	if err == nil {
		if err = c.read(ctx, a); err != nil {
			err = fmt.Errorf("checkpoint: %s: %w", c.Path, err)
		}
	}
	if f.Usable() != nil {
		return err
	}
	return f.Placement.Agree(ctx, "read a checkpoint", err)
}

func (c *Checkpoint) read(ctx context.Context, a Array) (err error) {
	all, done, err := parts(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(busyReaders)
	for _, p := range all {
		stored, err := p.open(c.Path)
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		for shard := range stored.Shards() {
			for rank, sub := range p.field.Cut.Subdomains {
				box := sub.Box.Intersect(p.beginningIn(stored.Shard(shard)))
				if box.Empty() || !p.field.Placement.IsLocal(rank) {
					continue
				}
				group.Go(func() error {
					if err := ctx.Err(); err != nil {
						return err
					}
					return p.load(stored, box)
				})
			}
		}
	}
	return group.Wait()
}

// load sets the points of a box.
func (p part) load(stored *zarr.Array, box domain.Box) error {
	data := make([]byte, box.Points()*int64(p.bytes))
	if err := stored.Read(data, 0, p.valuesOf(box)); err != nil {
		return err
	}
	return halo.Write(p.field, box, data)
}
