package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

var man = flag.String("man", "", "write the man pages into this folder")

// page returns a page of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: the pages are not here")
	}
	test.Check(t, err)
	return string(text)
}

// The commands of pages have the flags and arguments that they show, and what they read from the repository is there.
func TestCommandsOfPages(t *testing.T) {
	inBlock := regexp.MustCompile(`(?m)^(?:(?:mpirun|srun) .*? )?(?:\./)?halox ([a-z][^#\n]*)`)
	inText := regexp.MustCompile("`(?:mpirun [^`]*? )?halox ((?:plot|results|run|verify) [^`]*\\.(?:json|svg|yaml)[^`]*)`")
	pages, all := []string{"README.md"}, 0
	help := "--bind-to --oversubscribe --mca --mpi --gpus-per-task --hostname --ipc --uts" // of other programs
	test.Check(t, filepath.WalkDir("../../docs", func(file string, _ fs.DirEntry, err error) error {
		if strings.Contains(file, "/cli/") { // which TestReference compares with the help
			help += string(test.Must(os.ReadFile(file))(t))
		} else if filepath.Ext(file) == ".md" {
			pages = append(pages, strings.TrimPrefix(file, "../../"))
		}
		return err
	}))
	for _, name := range pages {
		for _, f := range regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(page(t, name), -1) {
			if !strings.Contains(help, f[1]) && !strings.HasSuffix(name, "examples.md") {
				t.Errorf("%s: no command has %s", name, f[1])
			}
		}
		var commands [][]string
		for i, text := range strings.Split(page(t, name), "```") {
			if i%2 == 1 {
				commands = append(commands, inBlock.FindAllStringSubmatch(text, -1)...)
			} else {
				commands = append(commands, inText.FindAllStringSubmatch(text, -1)...)
			}
		}
		all += len(commands)
		for _, c := range commands {
			cmd, rest, err := newRoot().Find(strings.Fields(c[1]))
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil || !cmd.Runnable() || cmd.HasSubCommands() {
				t.Errorf("%s: %s: %v", name, c[0], err)
			}
			for _, file := range regexp.MustCompile(`^(?:configs|results)/\S+`).FindAllString(strings.Join(rest, "\n"), -1) {
				if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
					t.Errorf("%s: %s: %v", name, c[0], err)
				}
			}
		}
	}
	if all < 60 {
		t.Errorf("the pages have %d commands", all)
	}
}

// TestReference compares the pages of docs/reference/cli with the help of the commands; -update writes them. With -man it
// writes the man pages into a folder.
func TestReference(t *testing.T) {
	const folder = "../../docs/reference/cli"
	page(t, "docs/index.md") // skips without pages
	root, dir := newRoot(), t.TempDir()
	root.DisableAutoGenTag = true
	test.Check(t, doc.GenMarkdownTree(root, dir))
	if *man != "" {
		test.Check(t, os.MkdirAll(*man, 0o755))
		test.Check(t, doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "halox " + solve.Version}, *man))
	}
	test.Check(t, os.WriteFile(filepath.Join(dir, "flags.md"), []byte(flagTable(root)), 0o644))
	got := test.Must(filepath.Glob(filepath.Join(dir, "*.md")))(t)
	if *update {
		test.Check(t, os.RemoveAll(folder))
		test.Check(t, os.MkdirAll(folder, 0o755))
	}
	for _, file := range got {
		text := strings.NewReplacer("\n##", "\n#", "[=true|false]", "             ", "SEE ALSO", "See also").Replace("\n" + string(test.Must(os.ReadFile(file))(t)))[1:]
		written := filepath.Join(folder, filepath.Base(file))
		if *update {
			test.Check(t, os.WriteFile(written, []byte(text), 0o644))
		}
		if is, err := os.ReadFile(written); err != nil || string(is) != text {
			t.Errorf("%s is not the help of the command (%v); run with -update", written, err)
		}
	}
	if is := test.Must(os.ReadDir(folder))(t); len(is) != len(got) {
		t.Errorf("%d pages of %d commands; run with -update", len(is), len(got))
	}
}

// flagTable is a page with all flags of all commands but --help, which all have. Flags that differ in type, default or
// meaning have separate lines.
func flagTable(root *cobra.Command) string {
	commands := map[string][]string{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			line := fmt.Sprintf("| `--%s` | %s | `%s` | %s |", f.Name, value, cmp.Or(f.DefValue, " "), usage)
			commands[line] = append(commands[line], strings.TrimPrefix(c.CommandPath(), "halox "))
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	text := "# All flags\n\nFlags of `halox` are flags of every command. " +
		"A flag whose default or meaning depends on the command has several lines.\n\n" +
		"| flag | value | default | meaning | commands |\n|---|---|---|---|---|\n"
	for _, line := range slices.Sorted(maps.Keys(commands)) {
		text += line + " " + strings.Join(commands[line], ", ") + " |\n"
	}
	return text
}

// The config that a page shows is whole, and its solution is the exact one.
func TestConfigOfThePage(t *testing.T) {
	config := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindStringSubmatch(page(t, "docs/how-to/write-a-config.md"))
	_, r := run(t, config[1], "--set", "grid.size=[16,8,8]", "--set", "stop.iterations=100", "--set", "devices.backend=host",
		"--set", "output.picture=null", "--set", "output.field=null")
	if *r.Run.Error.Max <= 0 || *r.Run.Error.Max > 0.01 {
		t.Errorf("it is %v off", *r.Run.Error.Max)
	}
}

// The configs of the gallery are short, run, and draw their picture or write their series.
func TestGallery(t *testing.T) {
	testdevices.Once(t)
	text := page(t, "docs/gallery.md")
	all := test.Must(filepath.Glob("../../configs/gallery/*.yaml"))(t)
	for _, file := range all {
		config, name := string(test.Must(os.ReadFile(file))(t)), strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			if n := strings.Count(config, "\n"); n > 30 || !strings.Contains(text, "configs/gallery/"+name+".yaml") {
				t.Errorf("it has %d lines, or is not on the page", n)
			}
			t.Chdir(t.TempDir())
			test.Check(t, os.WriteFile("c.yaml", []byte(config), 0o644))
			code, out, errs := cli("run", "c.yaml", "--set", "stop.iterations=3", "--set", "stop.time=null", "--set", "devices.backend=host")
			written := test.Must(filepath.Glob("out/gallery/*"))(t)
			if code != 0 || len(written) == 0 {
				t.Errorf("exit %d, %v written: %s%s", code, written, out, errs)
			}
		})
	}
	if len(all) != 8 {
		t.Errorf("%d configs", len(all))
	}
}

// The commands of the README and of tutorials can be typed one after the other, and print the tutorials' lines. Configs go
// to the file that is named last before them.
func TestCommandsOfTheREADME(t *testing.T) {
	testdevices.Once(t)
	for name, text := range map[string]string{
		"README": page(t, "README.md"), "tutorial": page(t, "docs/tutorials/first-run.md"),
		"equations": page(t, "docs/tutorials/your-equation.md"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("HALOX_DEVICES_BACKEND", "host")
			t.Setenv("HALOX_DEVICES_COUNT", "2")
			var printed strings.Builder
			commands, named := 0, regexp.MustCompile("`(\\w+\\.yaml)`")
			for _, block := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
				before, _, _ := strings.Cut(text, block[0])
				if names := named.FindAllStringSubmatch(before, -1); block[1] == "yaml" && names != nil { // the file that is named last
					test.Check(t, os.WriteFile(names[len(names)-1][1], []byte(block[2]), 0o644))
				}
				if block[1] != "" {
					continue
				}
				for line := range strings.Lines(block[2]) {
					args, isCommand := strings.CutPrefix(strings.TrimPrefix(line, "./"), "halox ")
					args, _, _ = strings.Cut(args, "#")
					if !isCommand && name != "README" && !strings.Contains(printed.String(), line) {
						t.Errorf("nothing prints %q", line)
					}
					if !isCommand {
						continue
					}
					commands++
					if err := exec.Command("sh", "-n", "-c", "halox "+args).Run(); err != nil {
						t.Errorf("halox %s: a shell does not take it: %v", args, err)
					}
					code, out, errs := cli(strings.Fields(strings.ReplaceAll(args, "'", ""))...)
					if printed.WriteString(out); code != 0 {
						t.Errorf("halox %s: exit %d: %s%s", args, code, out, errs)
					}
				}
			}
			if commands < 4 {
				t.Errorf("%d commands", commands)
			}
		})
	}
}

// The program is the release that the newest numbered section of the changelog is about.
func TestVersionIsTheChangelogs(t *testing.T) {
	newest := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindStringSubmatch(page(t, "CHANGELOG.md"))
	if newest == nil || newest[1] != solve.Version {
		t.Errorf("the newest section is %q, and the program's version %s", newest, solve.Version)
	}
}
