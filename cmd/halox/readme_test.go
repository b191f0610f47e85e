package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// readmeBlock returns the first code block of the README after a heading.
func readmeBlock(t *testing.T, heading string) string {
	t.Helper()
	_, section, _ := strings.Cut(readme(t), "\n## "+heading+"\n")
	_, block, _ := strings.Cut(section, "```")
	_, block, _ = strings.Cut(block, "\n") // the language
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatalf("the README has no code under %q", heading)
	}
	return block
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: the README is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The config that the README shows is whole, and its solution is the exact one.
func TestConfigOfTheREADME(t *testing.T) {
	text := readmeBlock(t, "The config")
	if _, err := loadConfig(1, write(t, "readme.yaml", text), nil); err != nil {
		t.Fatal(err)
	}
	_, r := run(t, text, "--set", "grid.size=[16,8,8]", "--set", "stop.iterations=100", "--set", "devices.backend=host",
		"--set", "output.picture=null", "--set", "output.field=null")
	if *r.Run.Error.Max <= 0 || *r.Run.Error.Max > 0.01 {
		t.Errorf("it is %v off", *r.Run.Error.Max)
	}
}

// The commands that the README shows can be typed one after the other.
func TestCommandsOfTheREADME(t *testing.T) {
	testdevices.Once(t)
	commands := regexp.MustCompile(`(?m)^\./halox ([^#\n]+)`).FindAllStringSubmatch(readmeBlock(t, "Use"), -1)
	if len(commands) < 4 {
		t.Errorf("the README has %d commands", len(commands))
	}
	t.Chdir(t.TempDir())
	t.Setenv("HALOX_STOP_ITERATIONS", "5")
	t.Setenv("HALOX_DEVICES_BACKEND", "host")
	for _, c := range commands {
		if code, out, errs := cli(strings.Fields(c[1])...); code != 0 {
			t.Errorf("halox %s: exit %d: %s%s", c[1], code, out, errs)
		}
	}
}

// All commands that the README shows have the flags that it says, and the records and configs of the repository that they read are there.
func TestFlagsOfCommandsOfTheREADME(t *testing.T) {
	for _, line := range regexp.MustCompile(`(?m)^\./halox ([^#\n]+)`).FindAllStringSubmatch(readme(t), -1) {
		cmd, rest, err := newRoot().Find(strings.Fields(line[1]))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || !cmd.Runnable() || cmd.HasSubCommands() {
			t.Errorf("%s: %v", line[0], err)
		}
		for _, file := range regexp.MustCompile(`\b(?:configs|results)/\S+`).FindAllString(line[1], -1) {
			if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
				t.Errorf("%s: %v", line[0], err)
			}
		}
	}
}

// The flags that the README names are flags of halox run.
func TestFlagsOfTheREADME(t *testing.T) {
	_, text, _ := strings.Cut(readme(t), "`halox run` takes")
	text, _, _ = strings.Cut(text, "\n## ")
	flags := regexp.MustCompile("`--([a-z]+)").FindAllStringSubmatch(text, -1)
	if len(flags) < 4 {
		t.Errorf("the README names %d flags", len(flags))
	}
	for _, f := range flags {
		if newRunCommand().Flags().Lookup(f[1]) == nil {
			t.Errorf("halox run has no --%s", f[1])
		}
	}
}
