package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The commands that the page about performance shows have the flags that it says.
func TestCommandsOfThePerformancePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "performance.md"))
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: the page is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^halox (.*)$|`halox ((?:plot|results) [^`]*)`").FindAllStringSubmatch(string(text), -1)
	if len(lines) < 20 {
		t.Fatalf("%d commands", len(lines))
	}
	for _, line := range lines {
		cmd, rest, err := newRoot().Find(regexp.MustCompile(` +`).Split(line[1]+line[2], -1))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil || !cmd.Runnable() || cmd.HasSubCommands() {
			t.Errorf("%s: %v", line[0], err)
		}
	}
}

// The program is the release that the newest numbered section of the changelog is about.
func TestVersionIsTheChangelogs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: the changelog is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindSubmatch(text)
	if newest == nil || string(newest[1]) != version {
		t.Errorf("the newest section is %q, and the program's version %s", newest, version)
	}
}
