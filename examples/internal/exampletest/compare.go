package exampletest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

// Sums are the checksums of an example by its flags and the number of devices, which all backends share.
type Sums map[string]uint32

// eachSession runs f on so many host devices, so many GPUs that are made of the CPU, and so many GPUs where there are
// as many.
func eachSession(t *testing.T, devices int, f func(t *testing.T, s *halo.Session)) {
	run := func(t *testing.T, s *testdevices.Set) {
		if devices > len(s.Devices) {
			t.Skipf("SKIPPED: %d devices, the test wants %d", len(s.Devices), devices)
		}
		f(t, &halo.Session{Devices: s.Devices[:devices], Links: s.Links, Compiler: s.Compiler})
	}
	t.Run("backend=host", func(t *testing.T) { run(t, testdevices.Host(t, devices)) })
	t.Run("backend=cuda", func(t *testing.T) { run(t, testdevices.GPUs(t)) })
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { run(t, testdevices.CPU(t, devices)) })
}

// Compare runs an example with some flags on each kind of device. Its methods agree with each other and with its
// reference, and give the same checksum on each backend, unless sums is nil.
func Compare(t *testing.T, p func() compare.Program, sums Sums, devices int, flags string) {
	eachSession(t, devices, func(t *testing.T, s *halo.Session) {
		program := p()
		o, err := program.Parse(strings.Fields(flags), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		got, err := program.Run(t.Context(), s, o, &out)
		if err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "\n"+o.Methods[len(o.Methods)-1]+" ") {
			t.Errorf("no table of the methods in\n%s", text)
		}
		key := fmt.Sprintf("%d devices %s", devices, flags)
		if want, known := sums[key]; known && got != want {
			t.Errorf("checksum %08X, on another backend %08X", got, want)
		}
		if sums != nil {
			sums[key] = got
		}
	})
}

// Refused wants an example to refuse flags with an error, before it opens a device or when it knows these: errors has
// what each says by the flags.
func Refused(t *testing.T, p func() compare.Program, refusals map[string]string) {
	for flags, want := range refusals {
		err := p().Command(t.Context(), strings.Fields("--backend host "+flags), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", flags, err, want)
		}
	}
	var help strings.Builder
	if _, err := p().Parse([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-per-multiprocessor") {
		t.Errorf("-h gives %v and\n%s", err, help.String())
	}
}

// Stopped wants an example to end with its context.
func Stopped(t *testing.T, p func() compare.Program, flags string) {
	eachSession(t, 1, func(t *testing.T, s *halo.Session) {
		for _, method := range compare.Methods() {
			program := p()
			o, err := program.Parse(strings.Fields(flags+" --method "+method), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("enough")
			cancel(why)
			if _, err := program.Run(ctx, s, o, io.Discard); !errors.Is(err, why) {
				t.Errorf("%s: the error is %v", method, err)
			}
		}
	})
}
