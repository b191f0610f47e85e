package testdevices

import (
	"os"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Disturbed returns the set with a compiler that adds the definitions that the function returns to the programs of each
// device.
func (s *Set) Disturbed(define func(d *streams.Device) []string) (*Set, error) {
	options := kernels.Options{NVRTC: os.Getenv("HALOX_NVRTC")}
	if OnCPU(s.Devices[0]) {
		var err error
		if options, err = optionsForCPU(); err != nil {
			return nil, err
		}
	}
	options.Disturb = define
	return &Set{Devices: s.Devices, Links: s.Links, Compiler: kernels.NewCompiler(options)}, nil
}

// ByProcessorTime returns the set with a compiler whose kernels on the CPU measure processor time, so that their limits
// do not depend on the load of the machine.
func (s *Set) ByProcessorTime() (*Set, error) {
	return s.Disturbed(func(*streams.Device) []string { return []string{"PROCESSOR_TIME"} })
}
