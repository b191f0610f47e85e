package packing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// choices remembers what the engines took, by layout, in the user's cache: a file for
// each kind of device.
type choices struct {
	mu    sync.Mutex
	file  string // "" for nowhere
	times map[string][]Timed
}

// choicesVersion changes when kernels do so that what was measured is of no more use.
const choicesVersion = "1"

// open finds what was remembered of a device in a folder, or the user's cache where
// that is empty. A file that cannot be read counts as none.
func (c *choices) open(folder string, d *streams.Device) {
	c.times = map[string][]Timed{}
	where, err := p2p.CacheFolder(folder)
	if err != nil {
		return
	}
	name := sha256.Sum256([]byte(choicesVersion + " " + string(d.Backend) + " " + d.Name + " " + d.Arch))
	c.file = filepath.Join(where, "packing-"+hex.EncodeToString(name[:8])+".json")
	if text, err := os.ReadFile(c.file); err == nil && json.Unmarshal(text, &c.times) != nil {
		c.times = map[string][]Timed{}
	}
}

// get returns what was measured for a layout, the fastest engine first.
func (c *choices) get(key string) ([]Timed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := c.times[key]
	return times, len(times) > 0 && slices.Contains(Engines(), times[0].Engine)
}

// put remembers times, on disk if that is possible.
func (c *choices) put(key string, times []Timed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[key] = times
	if c.file == "" {
		return
	}
	text, err := json.Marshal(c.times)
	if err == nil {
		_ = p2p.WriteCache(c.file, append(text, '\n')) // next time it is measured again
	}
}
