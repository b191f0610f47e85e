package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/halox/halox/internal/cache"
)

// memory keeps what was learnt by measuring, by key, for as long as its compiler lives.
type memory struct {
	mu    sync.Mutex
	known map[string][]byte
}

// remember is what Compiler.Remember says, with entries in a folder.
func (m *memory) remember(folder cache.Folder, kind, key string, valid func([]byte) bool, learn func() ([]byte, error)) (learnt []byte, known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if learnt, known = m.known[key]; known {
		return learnt, true, nil
	}
	sum := sha256.Sum256([]byte(key))
	entry := folder.Entry(kind + "-" + hex.EncodeToString(sum[:8]) + ".json")
	if learnt, err = entry.Read(); err == nil && valid(learnt) {
		known = true
	} else if learnt, err = learn(); err != nil {
		return nil, false, err
	} else {
		_ = entry.Write(learnt) // else it is learnt again
	}
	if m.known == nil {
		m.known = map[string][]byte{}
	}
	m.known[key] = learnt
	return learnt, known, nil
}
