// Package usages returns the resource usage of kernels to tests, and compiles each program once: the compiler's log is
// stored in a folder, by everything that it depends on.
package usages

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/halox/halox/internal/nvrtc"
)

// verbose makes the compiler print the resource usage.
const verbose = "--ptxas-options=-v"

// Of compiles a source with the options, or reads the log of an earlier compilation from the folder, and returns the
// resource usage of its kernels. It rejects programs that compilers are known to compile wrongly. If the folder cannot
// be written, nothing is stored.
func Of(c *nvrtc.Compiler, folder string, s nvrtc.Source, options []string) ([]nvrtc.KernelUsage, error) {
	options = append(options[:len(options):len(options)], verbose)
	key, err := keyOf(c, s, options)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, key)
	if log, err := os.ReadFile(file); err == nil {
		return parse(string(log))
	}
	r, err := c.Compile(s, options)
	if err != nil {
		return nil, err
	}
	if lost := LostSigns(r.Image); len(lost) > 0 {
		return nil, fmt.Errorf("compilers lose the sign of a negated integer here: %q", lost)
	}
	found, err := parse(r.Log)
	if err == nil {
		keep(file, r.Log)
	}
	return found, err
}

func parse(log string) ([]nvrtc.KernelUsage, error) {
	found := nvrtc.ParseUsage(log)
	if len(found) == 0 {
		return nil, errors.New("the compiler reports no kernels:\n" + log)
	}
	return found, nil
}

// keyOf returns a hash of everything that the log depends on: the version of the compiler, the options and the sources.
func keyOf(c *nvrtc.Compiler, s nvrtc.Source, options []string) (string, error) {
	major, minor, err := c.Version()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d.%d %q %q %q\n", major, minor, options, s.Name, s.Text)
	headers := slices.Clone(s.Headers)
	slices.SortFunc(headers, func(a, b nvrtc.Header) int { return strings.Compare(a.Name, b.Name) })
	for _, header := range headers {
		fmt.Fprintf(h, "%q %q\n", header.Name, header.Text)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12]), nil
}

// keep writes a file atomically: other processes may read it.
func keep(file, text string) {
	if os.MkdirAll(filepath.Dir(file), 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(file), "new-*")
	if err != nil {
		return
	}
	_, err = f.WriteString(text)
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), file) != nil {
		os.Remove(f.Name())
	}
}
