package kernels

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/halox/halox/internal/nvrtc"
)

//go:embed cu/*.cu cu/*.cuh
var sources embed.FS

// Program is a CUDA source under cu/, or a caller's own, with all that fixes its variant. Two
// programs with equal fields compile to the same code.
type Program struct {
	File    string   // under cu/, or what the caller calls it
	Defines []string // NAME=VALUE
	Headers []Header // that were generated for it; the others are those of cu/
	Mirrors []Mirror // what it shares with Go
	own     string   // a caller's source
}

// Header is a generated header.
type Header struct{ Name, Text string }

// String names the file and the variant.
func (p Program) String() string {
	if len(p.Headers) == 0 {
		return fmt.Sprintf("%s%v", p.File, p.Defines)
	}
	h := sha256.New()
	for _, header := range p.Headers {
		h.Write([]byte(header.Text))
	}
	return fmt.Sprintf("%s%v", p.File, append(slices.Clone(p.Defines), fmt.Sprintf("%x", h.Sum(nil)[:4])))
}

// key tells programs apart.
func (p Program) key() string {
	return fmt.Sprintf("%s %q %q %s", p.File, p.Defines, p.Headers, p.own)
}

// source returns what is compiled: the file, and all headers that it and they include.
func (p Program) source() (nvrtc.Source, error) {
	main := nvrtc.Source{Name: p.File, Text: p.own}
	if p.own == "" {
		text, err := sources.ReadFile("cu/" + p.File)
		if err != nil {
			return main, err
		}
		main.Text = string(text)
	}
	main.Text += "\n" + layoutSource(p.File, p.Mirrors) // a caller's text may end within a line
	return main, p.addHeaders(&main, main.Text)
}

// included finds the headers of cu/ that a text includes; those of the CPU have other names.
var included = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"(\w+\.cuh)"`)

// callersHeader is what a caller's source includes, whether it says so or not.
const callersHeader = "halox.cuh"

// addHeaders adds the headers that a text includes, each once.
func (p Program) addHeaders(to *nvrtc.Source, text string) error {
	names := included.FindAllStringSubmatch(text, -1)
	if p.own != "" && len(to.Headers) == 0 {
		names = append(names, []string{"", callersHeader})
	}
	for _, name := range names {
		if slices.ContainsFunc(to.Headers, func(h nvrtc.Header) bool { return h.Name == name[1] }) {
			continue
		}
		text, err := p.header(name[1])
		if errors.Is(err, fs.ErrNotExist) && p.own != "" {
			continue // a header of the caller's, which the compiler will not find
		}
		if err != nil {
			return err
		}
		to.Headers = append(to.Headers, nvrtc.Header{Name: name[1], Text: text})
		if err := p.addHeaders(to, text); err != nil {
			return err
		}
	}
	return nil
}

// header returns the text of a header, which was generated or is one of cu/.
func (p Program) header(name string) (string, error) {
	for _, h := range p.Headers {
		if h.Name == name {
			return h.Text, nil
		}
	}
	text, err := sources.ReadFile("cu/" + name)
	return string(text), err
}

// sourcesForCPU are what stands for CUDA where the sources are compiled as C++.
//
//go:embed cu/cpu
var sourcesForCPU embed.FS

// Files returns all sources of the program by name, and those under cpu/ that stand for CUDA where
// they are compiled as C++ for the CPU.
func (p Program) Files() (map[string]string, error) {
	source, err := p.source()
	if err != nil {
		return nil, err
	}
	files := map[string]string{p.File: source.Text}
	for _, h := range source.Headers {
		files[h.Name] = h.Text
	}
	names, err := fs.Glob(sourcesForCPU, "cu/cpu/*.h")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := sourcesForCPU.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(name, "cu/")] = string(text)
	}
	return files, nil
}
