package scheme

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/streams"
)

// alsoLost adds to the error of a lost device the names of others that are lost. Where GPUs reach each other's memory CUDA loses several when one
// fails, and the one that a run hears of first need not be the one that failed.
func alsoLost(err error, devices []*streams.Device) error {
	var first *streams.Error
	if !errors.As(err, &first) || !first.Fatal {
		return err
	}
	others := lostAmong(devices, time.Second)
	others = slices.DeleteFunc(others, func(name string) bool { return name == first.Device })
	if len(others) == 0 {
		return err
	}
	return fmt.Errorf("%w (also lost: %s; any of them may have failed first)", err, strings.Join(others, ", "))
}

// lostAmong returns the names of lost devices. A device that does not answer within the limit is none of them.
func lostAmong(devices []*streams.Device, limit time.Duration) (names []string) {
	answers := make(chan error, len(devices))
	for _, d := range devices {
		if d == nil { // another process has it
			answers <- nil
			continue
		}
		go func() {
			_, _, err := d.MemoryInfo()
			answers <- err
		}()
	}
	defer func() { slices.Sort(names) }()
	end := time.After(limit)
	for range devices {
		select {
		case err := <-answers:
			var lost *streams.Error
			if errors.As(err, &lost) && lost.Fatal && !slices.Contains(names, lost.Device) {
				names = append(names, lost.Device)
			}
		case <-end:
			return names
		}
	}
	return names
}
