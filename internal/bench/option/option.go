// Package option sets and checks options by flags, and checks the files that commands write.
package option

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/internal/files"
)

// MaxPoints bounds the points along an axis: a grid of one point more on every axis has more bytes than an int64
// counts.
const MaxPoints = 1 << 20

// File is a file that a command writes or reads.
type File struct {
	Name, Path string   // Name in errors: a flag, a config key or "the config"; no file if Path is empty
	Ends       []string // required endings of a written file; nil for any
}

// Record returns the file that a record is written to.
func Record(name, path string) File { return File{name, path, []string{".json"}} }

// Drawing returns the file that something is drawn into.
func Drawing(name, path string) File { return File{name, path, []string{".png", ".svg", ".pdf"}} }

// CheckFiles returns an error for each file that cannot be written, has another ending, or is also read or written by
// an earlier entry. It creates no folder.
func CheckFiles(written []File, read ...File) error {
	var errs []error
	for _, f := range written {
		if f.Path != "" {
			errs = append(errs, f.check(read))
			read = append(read, f)
		}
	}
	return errors.Join(errs...)
}

func (f File) check(others []File) error {
	for _, o := range others {
		if o.Path != "" && files.Same(o.Path, f.Path) {
			return fmt.Errorf("%s: %s is %s: name another file", f.Name, f.Path, o.Name)
		}
	}
	if len(f.Ends) > 0 && !slices.Contains(f.Ends, strings.ToLower(filepath.Ext(f.Path))) {
		return fmt.Errorf("%s %s: the name must end in %s", f.Name, f.Path, strings.Join(f.Ends, ", "))
	}
	if err := files.CheckWritable(f.Path); err != nil {
		return fmt.Errorf("%s: %s cannot be written: %w", f.Name, f.Path, err)
	}
	return nil
}

// Texts returns names as plain strings.
func Texts[T ~string](all []T) (texts []string) {
	for _, v := range all {
		texts = append(texts, string(v))
	}
	return texts
}

// List writes numbers as an option takes them.
func List(all []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]")
}

// units are the units of sizes, the longest names first.
var units = []struct {
	name  string
	bytes float64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3},
	{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"k", 1 << 10}, {"B", 1},
}

// sizes returns the values of an option in bytes: whole numbers above 0, such as 1024, 1KiB, 1K or 0.5MiB.
func sizes(name string, texts []string) (all []int64, err error) {
	for _, text := range texts {
		n, err := parseSize(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", name, err)
		}
		all = append(all, n)
	}
	return all, nil
}

func parseSize(text string) (int64, error) {
	number, factor := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if rest, found := strings.CutSuffix(number, u.name); found {
			number, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	const most = 1 << 46 // limit of exact integers in float64
	v, err := strconv.ParseFloat(number, 64)
	if bytes := v * factor; err == nil && bytes >= 1 && bytes <= most && bytes == math.Trunc(bytes) {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("must be a whole number of bytes above 0, such as 65536 or 64KiB, got %q", text)
}
