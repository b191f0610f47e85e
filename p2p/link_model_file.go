package p2p

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/streams"
)

// The link model of a machine is an entry of the cache. What cannot be read, or is not
// for these devices, is measured again.

// linkModelVersion changes when what is measured, or how, does.
const linkModelVersion = 1

// linkModelFile is the form of the file.
type linkModelFile struct {
	Version int        `json:"version"`
	Machine Machine    `json:"machine"`
	Curves  []tripFile `json:"curves"`
}

type tripFile struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Path    Path   `json:"path"`
	Packed  bool   `json:"packed"`
	Samples Curve  `json:"samples"`
}

// entryOf returns where the link model of a machine is kept.
func entryOf(folder string, m Machine) cache.Entry {
	text, _ := json.Marshal(m) // of strings
	return cache.At(folder).Entry(fmt.Sprintf("links-%.8x.json", sha256.Sum256(text)))
}

// LoadLinkModel reads the link model of the devices that Save kept in the folder of the
// cache; where it is empty, in the one that the variable HALOX_CACHE names, else the
// user's. It is an error if there is none, or if the file is damaged, of other devices, or
// may be the work of another user.
func LoadLinkModel(folder string, devices []*streams.Device, driver string) (*LinkModel, error) {
	if slices.Contains(devices, nil) {
		return nil, errNoDevice
	}
	r := NewLinkModel(devices, driver)
	entry := entryOf(folder, r.machine)
	text, err := entry.Read()
	if err != nil {
		return nil, err
	}
	if err := r.parse(text); err != nil {
		return nil, fmt.Errorf("p2p: %s: %w", entry.Path(), err)
	}
	return r, nil
}

// parse adds the curves of a file, if it is one of the machine.
func (r *LinkModel) parse(text []byte) error {
	var f linkModelFile
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if f.Version != linkModelVersion || !f.Machine.equal(r.machine) {
		return fmt.Errorf("it is of version %d for %v, not of version %d for %v", f.Version, f.Machine,
			linkModelVersion, r.machine)
	}
	for _, c := range f.Curves {
		if !c.Samples.valid() || !slices.Contains(Paths(), c.Path) {
			return fmt.Errorf("no curve from %s to %s by %s: %v", c.From, c.To, c.Path, c.Samples)
		}
		r.curves[trip{c.From, c.To, c.Path, c.Packed}] = c.Samples
	}
	return nil
}

// Save keeps the link model in the folder, as LoadLinkModel finds it; it makes the folder
// where that is missing.
func (r *LinkModel) Save(folder string) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	return entryOf(folder, r.machine).Write(text)
}

// encode returns the file.
func (r *LinkModel) encode() ([]byte, error) {
	f := linkModelFile{Version: linkModelVersion, Machine: r.machine}
	for _, t := range slices.SortedFunc(maps.Keys(r.curves), trip.compare) {
		f.Curves = append(f.Curves, tripFile{t.from, t.to, t.path, t.packed, r.curves[t]})
	}
	text, err := json.MarshalIndent(f, "", "\t")
	return append(text, '\n'), err
}

func (t trip) compare(u trip) int {
	order := cmp.Or(cmp.Compare(t.from, u.from), cmp.Compare(t.to, u.to), cmp.Compare(t.path, u.path))
	if order != 0 || t.packed == u.packed {
		return order
	}
	if u.packed {
		return -1
	}
	return 1
}
