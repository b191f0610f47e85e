package nvrtc

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Find finds the library and returns a path, or a name for the loader, for [Open]. A non-empty override is the library,
// its folder or a name for the loader, and the only place that is searched. Otherwise Find tries the loader, then
// LD_LIBRARY_PATH, the folders of CUDA toolkits and the site packages of Python, and returns the newest version in the
// first place that has one. tried has the places in that order, up to the one with the library. The error is a
// [*NotFoundError], or [ErrUnsupported].
func Find(override string) (path string, tried []string, err error) {
	if !supported {
		return "", nil, ErrUnsupported
	}
	if override != "" && filepath.Base(override) == override && loads(override) {
		return override, []string{override}, nil
	}
	if override != "" {
		return newest(within(override), nil)
	}
	for _, name := range []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"} {
		tried = append(tried, name)
		if loads(name) {
			return name, tried, nil
		}
	}
	return newest(places(), tried)
}

// newest finds files by patterns, in order.
func newest(patterns, tried []string) (string, []string, error) {
	for _, pattern := range patterns {
		tried = append(tried, pattern)
		// An error means that the pattern is malformed, for example because an environment variable contains a bracket:
		// there are no such files.
		found, _ := filepath.Glob(pattern)
		if found = slices.DeleteFunc(found, isFolder); len(found) > 0 {
			return slices.MaxFunc(found, compareVersions), tried, nil
		}
	}
	return "", tried, &NotFoundError{Tried: tried}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir()
}

// places returns the default patterns.
func places() (patterns []string) {
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
		if dir != "" {
			patterns = append(patterns, filepath.Join(dir, library))
		}
	}
	patterns = append(patterns,
		"/usr/local/cuda/lib64/"+library,
		"/usr/local/cuda*/targets/*/lib/"+library,
	)
	for _, prefix := range pythonPrefixes() {
		for _, packages := range []string{"site-packages", "dist-packages"} {
			patterns = append(patterns, filepath.Join(prefix, "lib*", "python3*", packages, wheel, library))
		}
	}
	return patterns
}

const (
	library = "libnvrtc.so*"
	wheel   = "nvidia/*/lib" // folder of libraries in the target of a wheel
)

// within returns the patterns for a path that is the library itself, its folder, a toolkit, or the target of an
// installed wheel.
func within(path string) []string {
	return []string{
		path,
		filepath.Join(path, library),
		filepath.Join(path, "lib*", library),
		filepath.Join(path, wheel, library),
	}
}

// pythonPrefixes returns the prefixes of Python installations.
func pythonPrefixes() (prefixes []string) {
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(variable); dir != "" {
			prefixes = append(prefixes, dir)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	return append(prefixes, "/usr/local", "/usr", "/opt/venv", "/opt/conda")
}

var digits = regexp.MustCompile(`\d+`)

// compareVersions orders paths of libraries by the version in the file's name,
// then by those in the folders, the outermost first: 12.10 comes after 12.9,
// and a name with a version after the bare one.
func compareVersions(a, b string) int {
	return cmp.Or(
		compareNumbers(filepath.Base(a), filepath.Base(b)), slices.CompareFunc(folders(a), folders(b), compareNumbers),
		cmp.Compare(a, b),
	)
}

// folders returns the names of the folders of a file.
func folders(path string) []string {
	return strings.Split(filepath.ToSlash(filepath.Dir(path)), "/")
}

// compareNumbers compares names by the numbers in them.
func compareNumbers(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(name string) (all []int) {
	for _, d := range digits.FindAllString(name, -1) {
		n, _ := strconv.Atoi(d)
		all = append(all, n)
	}
	return all
}
