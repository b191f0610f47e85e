package streams

import "time"

// SetGrace sets how long Close of a device waits for its streams.
func (d *Device) SetGrace(limit time.Duration) { d.grace = limit }

// Register adds a test-only backend: CPU devices with another name and other traits, except for the form of their
// kernels. It returns a function that removes the backend.
func Register(name Backend, traits Traits) (restore func()) {
	before := kinds
	kinds = append(Kinds(), Kind{Backend: name, Traits: traits, open: func(_ string, devices int) (*Platform, error) {
		p := HostPlatform(devices)
		for i := range p.infos {
			p.infos[i].Backend, p.infos[i].Traits, p.infos[i].Name = name, traits, traits.Noun
		}
		return p, nil
	}})
	return func() { kinds = before }
}
