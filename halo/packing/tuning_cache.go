package packing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/streams"
)

// tuning is what was measured of a layout.
type tuning struct {
	Kind     string   `json:"kind"`   // of task: what the times depend on besides the layout
	Layout   string   `json:"layout"` // its name
	Features features `json:"features"`
	Times    []timed  `json:"times"`             // the fastest first
	Skipped  []timed  `json:"skipped,omitempty"` // was not measured: the model says that it takes so long
}

// valid reports whether a tuning is one that was measured of these engines, as far as can be seen.
func (c *tuning) valid(engines []Engine) bool {
	wrong := func(m timed) bool { return m.Time <= 0 || !slices.Contains(engines, m.Engine) }
	return len(c.Times) > 0 && c.Features[perLaunch] == 1 && slices.Min(c.Features[:]) >= 0 &&
		!slices.ContainsFunc(c.Times, wrong) && !slices.ContainsFunc(c.Skipped, wrong)
}

// tuningCache remembers what the engines took, in the cache: an entry for each kind of
// device.
type tuningCache struct {
	mu      sync.Mutex
	entry   cache.Entry
	engines []Engine         // that tunings are of
	text    []byte           // what it held when it was last read or written here
	all     []tuning         // the oldest first, at most maxTunings
	models  map[string]model // fitted to them, by kind
}

// tuningsVersion changes when the features of a task do, or how it is measured, so that what was
// measured is of no more use. The engines have revisions of their own.
const tuningsVersion = "2"

// maxTunings is how many layouts are remembered. The file is written with each new one.
const maxTunings = 512

// open finds what was remembered of a device and the engines, with their revisions, in a folder of
// the cache, see Options. A file that cannot be read, or is damaged, counts as none.
func (c *tuningCache) open(folder string, d *streams.Device, engines []Engine, revisions []int) {
	c.engines = engines
	name := sha256.Sum256(fmt.Appendf(nil, "%s %v %v %s %s %s", tuningsVersion, engines, revisions, d.Backend, d.Name, d.Arch))
	c.entry = cache.At(folder).Entry("packing-" + hex.EncodeToString(name[:8]) + ".json")
	var err error
	if c.text, err = c.entry.Read(); err == nil {
		c.all = c.parse(c.text)
	}
}

// parse returns the tunings of a file, none where one of them is broken.
func (c *tuningCache) parse(text []byte) (all []tuning) {
	broken := func(x tuning) bool { return !x.valid(c.engines) }
	if json.Unmarshal(text, &all) != nil || slices.ContainsFunc(all, broken) {
		return nil
	}
	return all
}

// get returns what was measured for a layout.
func (c *tuningCache) get(kind, layout string) (tuning, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.all, func(x tuning) bool { return x.Layout == layout && x.Kind == kind })
	if i < 0 {
		return tuning{}, false
	}
	return c.all[i], true
}

// put remembers a tuning, on disk if that is possible. Packers of equal devices share the
// file: what others have put there since stays, and is remembered here too.
func (c *tuningCache) put(x tuning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.models = nil
	c.all = latest(c.all, []tuning{x})
	_ = c.entry.Update(func(old []byte) ([]byte, error) { // next time it is measured again
		var others []tuning
		if !bytes.Equal(old, c.text) { // to parse it takes longer than all else here
			others = c.parse(old)
		}
		c.all = latest(c.all, others, []tuning{x})
		text, err := json.Marshal(c.all)
		c.text = append(text, '\n')
		return c.text, err
	})
}

// latest joins lists, each later than the one before. Of tunings for the same layout it
// keeps the last, and of all no more than maxTunings: it forgets the oldest.
func latest(lists ...[]tuning) []tuning {
	type name struct{ kind, layout string }
	seen := map[name]bool{}
	var all []tuning
	for _, x := range slices.Backward(slices.Concat(lists...)) {
		n := name{x.Kind, x.Layout}
		if !seen[n] && len(all) < maxTunings {
			all = append(all, x)
		}
		seen[n] = true
	}
	slices.Reverse(all)
	return all
}

// model returns the model for a kind of task, fitted to all that is remembered of it.
func (c *tuningCache) model(kind string) model {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.models[kind]; ok {
		return m
	}
	samples := map[Engine][]sample{}
	for _, x := range c.all {
		for _, m := range x.Times {
			if x.Kind == kind {
				samples[m.Engine] = append(samples[m.Engine], sample{x.Features, float64(m.Time)})
			}
		}
	}
	m := model{}
	for e, all := range samples {
		m[e] = newFit(all) // nil is as good as none
	}
	if c.models == nil {
		c.models = map[string]model{}
	}
	c.models[kind] = m
	return m
}
