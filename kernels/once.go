package kernels

import "sync"

// once keeps what is made, by key. The first who asks makes it, and others wait for that; an error
// is for all who wait, and is not kept. The zero value is empty.
type once[T any] struct {
	mu    sync.Mutex
	byKey map[string]*func() (T, error)
}

func (o *once[T]) get(key string, make func() (T, error)) (T, error) {
	o.mu.Lock()
	found := o.byKey[key]
	if found == nil {
		if o.byKey == nil {
			o.byKey = map[string]*func() (T, error){}
		}
		made := sync.OnceValues(make)
		found = &made
		o.byKey[key] = found
	}
	o.mu.Unlock()
	value, err := (*found)()
	if err != nil {
		o.mu.Lock()
		if o.byKey[key] == found {
			delete(o.byKey, key)
		}
		o.mu.Unlock()
	}
	return value, err
}
