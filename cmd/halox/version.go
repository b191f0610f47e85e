package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/results"
)

// version is the release that the next one follows; CHANGELOG.md has a section for it.
const version = "0.3.0"

// program returns the version, and the commit from the build info.
func program() results.Program {
	p := results.Program{Version: version, Commit: "unknown commit"}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return p
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			p.Commit = s.Value[:min(8, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			p.Commit += " with changes"
		}
	}
	return p
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the Go version", Args: cobra.NoArgs,
		Example: "  halox version\n  halox version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, platform := program(), runtime.GOOS+"/"+runtime.GOARCH
			fmt.Fprintf(cmd.OutOrStdout(), "halox %s (%s), %s, %s\n", p.Version, p.Commit, runtime.Version(), platform)
			return command.Of(cmd.Context()).PrintJSON(map[string]string{"version": p.Version, "commit": p.Commit,
				"go": runtime.Version(), "platform": platform})
		},
	}
}
