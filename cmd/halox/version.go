package main

import "runtime/debug"

// version and commit are set by the linker; see the Makefile.
var (
	version = "dev"
	commit  = ""
)

// builtFrom returns the commit that the program was built from.
func builtFrom() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown commit"
}
