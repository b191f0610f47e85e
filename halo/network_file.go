package halo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// What trials of networks found is an entry of the cache of rank 0. What cannot be read, or is of others, is tried again.

// networksVersion changes when what is tried, or how, does.
const networksVersion = 1

// networksFile is the form of the file.
type networksFile struct {
	Version int            `json:"version"`
	Of      networksOf     `json:"of"`
	Trials  []NetworkTrial `json:"trials"`
}

// networksOf is what trials hold for.
type networksOf struct {
	Library string   `json:"library"` // of MPI: where it lies, and its own words
	Driver  string   `json:"driver"`  // of the GPUs
	Devices []string `json:"devices"` // names of the GPUs of rank 0
	Nodes   []int    `json:"nodes"`   // by process: the number of its host
}

// networks are those between the devices of processes.
type networks struct {
	*mpi.Processes
	devices []*streams.Device // of this process
	driver  string            // version of the GPUs' driver
}

// key returns what trials hold for.
func (s networks) key() networksOf {
	k := networksOf{Library: s.LibraryFile() + " " + s.Library, Driver: s.driver, Nodes: s.Nodes}
	for _, d := range s.devices {
		k.Devices = append(k.Devices, d.Name)
	}
	return k
}

func (k networksOf) equal(l networksOf) bool {
	return k.Library == l.Library && k.Driver == l.Driver && slices.Equal(k.Devices, l.Devices) && slices.Equal(k.Nodes, l.Nodes)
}

// entry returns where trials are kept.
func (k networksOf) entry() cache.Entry {
	text, _ := json.Marshal(k) // of strings and numbers
	return cache.At("").Entry(fmt.Sprintf("networks-%.8x.json", sha256.Sum256(text)))
}

// keep keeps trials, on rank 0. Where that fails, networks are tried again.
func (s networks) keep(trials []NetworkTrial) {
	if s.Rank != 0 {
		return
	}
	k := s.key()
	if text, err := json.MarshalIndent(networksFile{networksVersion, k, trials}, "", "\t"); err == nil {
		_ = k.entry().Write(text, []byte("\n"))
	}
}

// recall returns the trials that rank 0 has kept, on all processes, nil where there are none. All call it.
func (s networks) recall(ctx context.Context) (trials []NetworkTrial, err error) {
	var text []byte
	if s.Rank == 0 {
		text, _ = s.key().entry().Read() // without it nothing is known
	}
	var f networksFile
	if json.Unmarshal(text, &f) != nil || !f.valid() || !f.Of.equal(s.key()) {
		text = nil
	}
	if text, err = s.Broadcast(ctx, "what is known of networks", text, 0); err != nil || len(text) == 0 {
		return nil, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, s.Fail(err)
	}
	return f.Trials, nil
}

// valid reports whether the file makes sense.
func (f networksFile) valid() bool {
	for _, t := range f.Trials {
		for _, c := range []*ProcessCurve{t.Within, t.Across} {
			if c != nil && len(c.Curve) == 0 {
				return false
			}
		}
	}
	return f.Version == networksVersion
}
