package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// memory keeps what was learnt by measuring, by key, for as long as its compiler lives.
type memory struct {
	mu    sync.Mutex
	known map[string][]byte
}

// Remember returns what learn returned for the key before, in this process or, by the cache, in
// another, and calls it where nobody has; known says that it did not. What the cache holds counts
// only if it is valid. Calls on one compiler come one after the other, so that devices of one kind
// learn once.
func (c *Compiler) Remember(kind, key string, valid func([]byte) bool, learn func() ([]byte, error)) (learnt []byte, known bool, err error) {
	c.learnt.mu.Lock()
	defer c.learnt.mu.Unlock()
	if learnt, known = c.learnt.known[key]; known {
		return learnt, true, nil
	}
	sum := sha256.Sum256([]byte(key))
	entry := c.cache.Entry(kind + "-" + hex.EncodeToString(sum[:8]) + ".json")
	if learnt, err = entry.Read(); err == nil && valid(learnt) {
		known = true
	} else if learnt, err = learn(); err != nil {
		return nil, false, err
	} else {
		_ = entry.Write(learnt) // else it is learnt again
	}
	if c.learnt.known == nil {
		c.learnt.known = map[string][]byte{}
	}
	c.learnt.known[key] = learnt
	return learnt, known, nil
}
