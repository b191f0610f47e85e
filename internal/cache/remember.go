package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// A Store stores one value of type T, such as the results of measurements, for later processes. The value is encoded as
// JSON. The zero Store is always empty.
type Store[T any] struct {
	entry Entry
	key   []byte
	valid func(T) bool
}

// stored is the JSON form of a store's file.
type stored[T any] struct {
	Key   json.RawMessage `json:"key"`
	Value T               `json:"value"`
}

// Remember returns the store of a value that is valid only for its kind and key: everything that the value depends on,
// such as the devices, the driver, and the version of the code that measures it. The key must have an encoding as JSON.
// valid reports whether Put can have stored a value, so that a damaged one is not used.
func Remember[T any](folder Folder, kind string, key any, valid func(T) bool) Store[T] {
	text, err := json.Marshal(key)
	if err != nil {
		panic(fmt.Sprintf("cache: the key of %s: %v", kind, err))
	}
	sum := sha256.Sum256(text)
	return Store[T]{folder.Hashed(kind+"-", sum[:8], ".json"), text, valid}
}

// Path returns the name of the store's file, "" for the zero Store.
func (s Store[T]) Path() string { return s.entry.Path() }

// Get returns the value. It returns an error if there is none: see Entry.Read; or if the file is damaged, or has
// another key.
func (s Store[T]) Get() (value T, err error) {
	text, err := s.entry.Read()
	if err != nil {
		return value, err
	}
	var v stored[T]
	switch err := json.Unmarshal(text, &v); {
	case err != nil:
		return value, s.entry.unused(err)
	case !bytes.Equal(v.Key, s.key):
		return value, s.entry.unused(fmt.Errorf("must be for %[2]s, is for %[1]s", v.Key, s.key))
	case !s.valid(v.Value):
		return value, s.entry.unused(errors.New("is damaged"))
	}
	return v.Value, nil
}

// Put replaces the value.
func (s Store[T]) Put(value T) error {
	text, err := json.Marshal(stored[T]{s.key, value})
	if err != nil {
		return err
	}
	return s.entry.Write(text, []byte("\n"))
}
