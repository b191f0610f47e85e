//go:build !linux || !cgo

package p2p

import "errors"

// NVML is not part of this build.
type NVML struct{}

// OpenNVML returns an error: NVML needs Linux and cgo.
func OpenNVML() (*NVML, error) { return nil, errors.New("p2p: this build has no NVML") }

// Close does nothing.
func (*NVML) Close() error { return nil }

// Link returns an error.
func (*NVML) Link(string, string) (string, error) {
	return "", errors.New("p2p: this build has no NVML")
}

// MaxClocks returns an error.
func (*NVML) MaxClocks(string) (cores, memory int, err error) {
	return 0, 0, errors.New("p2p: this build has no NVML")
}

// DriverVersion returns "".
func (*NVML) DriverVersion() string { return "" }
