package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
)

// cppCompiler returns a C++ compiler, and the flags with which editors read the sources too: they have
// what stands for CUDA on a CPU. It skips the test without one, and where the sources of tests are not.
func cppCompiler(t *testing.T) (compiler string, flags []string) {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("SKIPPED: no C++ compiler: ", err)
	}
	text, err := os.ReadFile("cu/compile_flags.txt")
	if err != nil {
		t.Skip("SKIPPED: the CUDA sources are not here: ", err)
	}
	dir, err := filepath.Abs("cu")
	if err != nil {
		t.Fatal(err)
	}
	flags = []string{"-I" + dir, "-fsyntax-only"}
	for flag := range strings.Lines(string(text)) {
		flags = append(flags, strings.TrimSpace(flag))
	}
	return compiler, flags
}

// writeSources writes the sources of a program to a folder.
func writeSources(t *testing.T, p Program) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files, err := p.source()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files.Headers, nvrtc.Header{Name: p.File, Text: files.Text}) {
		if err := os.WriteFile(filepath.Join(dir, file.Name), []byte(file.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Every file is C++ by itself, with the flags that editors take: it includes what it needs.
func TestEveryFileStandsAlone(t *testing.T) {
	compiler, flags := cppCompiler(t)
	files, err := filepath.Glob("cu/*.cu*")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(compiler, append(flags, "-w", file)...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The sources compile as C++ with their mirrors, where there is no NVRTC either: one program of each
// file and type.
func TestLayouts(t *testing.T) {
	compiler, flags := cppCompiler(t)
	seen := map[string]bool{}
	for _, p := range Programs() {
		kind := fmt.Sprint(p.File, p.Defines[:min(1, len(p.Defines))])
		if seen[kind] {
			continue
		}
		seen[kind] = true
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			all := append(flags[:len(flags):len(flags)], "-w")
			for _, d := range p.Defines {
				all = append(all, "-D"+d)
			}
			check := exec.Command(compiler, append(all, filepath.Join(writeSources(t, p), p.File))...)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
