package results

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Source is a record with the name by which people tell it from others.
type Source struct {
	Name string
	*Record
}

// ReadAll reads the records of some files. A source's name is its file's, without
// the folders that all have in common.
func ReadAll(paths ...string) ([]Source, error) {
	names := shortNames(paths)
	var all []Source
	for i, path := range paths {
		r, err := Read(path)
		if err != nil {
			return nil, err
		}
		all = append(all, Source{names[i], r})
	}
	return all, nil
}

// shortNames drops the folders that all paths begin with.
func shortNames(paths []string) []string {
	var parts [][]string
	for _, path := range paths {
		parts = append(parts, strings.Split(filepath.ToSlash(filepath.Clean(path)), "/"))
	}
	for len(parts) > 0 && !slices.ContainsFunc(parts, func(p []string) bool { return len(p) < 2 || p[0] != parts[0][0] }) {
		for i := range parts {
			parts[i] = parts[i][1:]
		}
	}
	var names []string
	for _, p := range parts {
		names = append(names, strings.Join(p, "/"))
	}
	return names
}
