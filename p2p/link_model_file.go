package p2p

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/halox/halox/streams"
)

// The link model of a machine is kept in a file of their own. It only saves time: what
// cannot be read, or is not for these devices, is measured again.

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

// CacheFolder returns the folder itself, or where that is empty the user's own for
// what halox measured.
func CacheFolder(folder string) (string, error) {
	if folder != "" {
		return folder, nil
	}
	user, err := os.UserCacheDir()
	return filepath.Join(user, "halox"), err
}

// fileOf returns where the link model of a machine are kept.
func fileOf(folder string, m Machine) string {
	text, _ := json.Marshal(m) // of strings
	return filepath.Join(folder, fmt.Sprintf("links-%.8x.json", sha256.Sum256(text)))
}

// LoadLinkModel reads the link model of the devices that Save kept in the folder. It is an
// error if there are none, or if the file is damaged or of other devices.
func LoadLinkModel(folder string, devices []*streams.Device, driver string) (*LinkModel, error) {
	r := NewLinkModel(devices, driver)
	name := fileOf(folder, r.machine)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f linkModelFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("p2p: %s: %w", name, err)
	}
	if f.Version != linkModelVersion || !f.Machine.equal(r.machine) {
		return nil, fmt.Errorf("p2p: %s is of version %d for %v, not of version %d for %v", name, f.Version, f.Machine, linkModelVersion, r.machine)
	}
	for _, c := range f.Curves {
		if !c.Samples.valid() {
			return nil, fmt.Errorf("p2p: %s: no curve from %s to %s by %s: %v", name, c.From, c.To, c.Path, c.Samples)
		}
		r.curves[trip{c.From, c.To, c.Path, c.Packed}] = c.Samples
	}
	return r, nil
}

// Save keeps the link model in the folder, which it makes where it is missing. The file
// gets its name when it is whole.
func (r *LinkModel) Save(folder string) error {
	f := linkModelFile{Version: linkModelVersion, Machine: r.machine}
	for _, t := range slices.SortedFunc(maps.Keys(r.curves), trip.compare) {
		f.Curves = append(f.Curves, tripFile{t.from, t.to, t.path, t.packed, r.curves[t]})
	}
	text, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return err
	}
	return WriteCache(fileOf(folder, r.machine), append(text, '\n'))
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

// WriteCache writes a file of what was measured, in a folder that it makes where it is
// missing. Others see the file whole or not at all.
func WriteCache(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// updates lets one change of a file be under way at a time: of two that begin with the same
// text, the later would undo the earlier.
var updates sync.Mutex

// UpdateCache writes a file of what was measured anew, as WriteCache does: what change makes
// of its text, which is nil where it cannot be read. No change within this process gets
// lost. One by another process at the same moment may: no lock is taken for what can be
// measured again.
func UpdateCache(name string, change func(old []byte) ([]byte, error)) error {
	updates.Lock()
	defer updates.Unlock()
	old, err := os.ReadFile(name)
	if err != nil {
		old = nil
	}
	text, err := change(old)
	if err != nil {
		return err
	}
	return WriteCache(name, text)
}
