package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/zarr"
)

// newest is the newest format version of checkpoints. All versions up to it can be read.
const newest = 1

const (
	manifestName = "manifest.json"
	maxManifest  = 256 << 20 // bytes
)

// Manifest lists the files of a checkpoint. It is written last.
type Manifest struct {
	Format  int         `json:"format"`  // format version
	Run     string      `json:"run"`     // identifies the run, see Options.Run
	Step    int64       `json:"step"`    // number of completed steps
	Written time.Time   `json:"written"` // when it was complete
	Files   []zarr.File `json:"files"`   // all others, with paths in the folder of the checkpoint
}

// sumKey precedes the checksum at the end of a manifest, of all bytes before it.
const sumKey = ",\n  \"crc32\": "

// encode returns the text of the manifest.
func (m Manifest) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSuffix(text, []byte("\n}"))
	return fmt.Appendf(text, "%s%d\n}\n", sumKey, crc32.ChecksumIEEE(text)), nil
}

// readManifest reads the manifest of the checkpoint at path.
func readManifest(path string) (m Manifest, err error) {
	text, err := files.Read(filepath.Join(path, manifestName), maxManifest)
	if err != nil {
		return m, fmt.Errorf("%s: %w", manifestName, plain(err))
	}
	var head struct{ Format int }
	if err := json.Unmarshal(text, &head); err != nil {
		return m, fmt.Errorf("%s: %w", manifestName, err)
	}
	if head.Format > newest {
		return m, fmt.Errorf("%s: format: must be at most %d, got %d of a newer version of halox", manifestName, newest,
			head.Format)
	}
	var sum struct {
		CRC32 *uint32
	}
	end := bytes.LastIndex(text, []byte(sumKey))
	if err := errors.Join(json.Unmarshal(text, &m), json.Unmarshal(text, &sum)); err != nil {
		return m, fmt.Errorf("%s: %w", manifestName, err)
	}
	switch {
	case head.Format < 1:
		return m, fmt.Errorf("%s: format: must be at least 1, got %d", manifestName, head.Format)
	case end < 0 || sum.CRC32 == nil:
		return m, fmt.Errorf("%s: crc32: must be its last entry", manifestName)
	case *sum.CRC32 != crc32.ChecksumIEEE(text[:end]):
		return m, fmt.Errorf("%s: crc32: must be %d as stored, got %d", manifestName, *sum.CRC32,
			crc32.ChecksumIEEE(text[:end]))
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) || f.Size < 0 {
			return m, fmt.Errorf("%s: files: must have paths in the folder and sizes, got %q", manifestName, f.Name)
		}
	}
	return m, nil
}

// verifyFile returns an error unless a file of the checkpoint at path has its size and checksum.
func verifyFile(path string, want zarr.File) error {
	f, err := openFile(path, want)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := crc32.NewIEEE()
	n, err := io.Copy(sum, f)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", want.Name, err)
	case n != want.Size:
		return fmt.Errorf("%s: must have %d bytes, got %d", want.Name, want.Size, n)
	case sum.Sum32() != want.CRC32:
		return fmt.Errorf("%s: crc32: must be %08x as in %s, got %08x", want.Name, want.CRC32, manifestName,
			sum.Sum32())
	}
	return nil
}

// openFile opens a file of the checkpoint at path, which must have its size.
func openFile(path string, want zarr.File) (*os.File, error) {
	f, err := files.Open(filepath.Join(path, filepath.FromSlash(want.Name)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", want.Name, plain(err))
	}
	info, err := f.Stat()
	if err == nil && info.Size() != want.Size {
		err = fmt.Errorf("%s: must have %d bytes as in %s, got %d", want.Name, want.Size, manifestName, info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// plain returns an error without the path, which the caller names.
func plain(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// Names of the folders of checkpoints: step-000000010000 and, while it is replaced, step-000000010000.old.
var checkpointName = regexp.MustCompile(`^step-([0-9]{12,19})(` + regexp.QuoteMeta(oldSuffix) + `)?$`)

const oldSuffix = ".old"

// folderOf returns the name of the folder of a checkpoint.
func folderOf(step int64) string { return fmt.Sprintf("step-%012d", step) }

// stepOf returns the step in the name of a folder. ok is false for other names.
func stepOf(name string) (step int64, ok bool) {
	m := checkpointName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	step, err := strconv.ParseInt(m[1], 10, 64)
	return step, err == nil
}

// Entry is a folder of a checkpoint, as List finds it.
type Entry struct {
	Path string // of the folder
	Manifest
	Bytes int64 // of all files
	Err   error // why it is not whole; nil if all files are there, with the right sizes
}

// List returns the checkpoints in a folder, the newest first: by their steps, which is the order of time in one run. If
// the folder is a checkpoint itself, it returns that. It compares the sizes of files, and the content of manifests and
// of metadata, but not of values: see Verify.
func List(folder string) ([]Entry, error) {
	found, err := os.ReadDir(folder)
	if err == nil && slices.ContainsFunc(found, func(f os.DirEntry) bool { return f.Name() == manifestName }) {
		return []Entry{inspect(folder)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: list: %w", err)
	}
	var all []Entry
	for _, f := range found {
		step, ok := stepOf(f.Name())
		if !ok {
			continue
		}
		e := inspect(filepath.Join(folder, f.Name()))
		e.Step = step
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { // the name without a suffix first
		return strings.Compare(olderFirst(b), olderFirst(a))
	})
	return all, nil
}

// olderFirst returns a text by which entries are sorted.
func olderFirst(e Entry) string {
	name, old := strings.CutSuffix(filepath.Base(e.Path), oldSuffix)
	step, _ := stepOf(name)
	return fmt.Sprintf("%019d %t", step, !old)
}

// inspect returns the entry of the checkpoint at path.
func inspect(path string) Entry {
	e := Entry{Path: path}
	e.Manifest, e.Err = readManifest(path)
	step, named := stepOf(filepath.Base(path))
	if e.Err == nil && named && step != e.Step {
		e.Err = fmt.Errorf("%s: step: must be %d as in the name of the folder, got %d: it is of another checkpoint",
			manifestName, step, e.Step)
	}
	for _, f := range e.Files {
		if e.Bytes += f.Size; e.Err != nil {
			continue
		}
		if filepath.Base(f.Name) == "zarr.json" {
			e.Err = verifyFile(path, f)
			continue
		}
		file, err := openFile(path, f)
		if e.Err = err; err == nil {
			e.Err = file.Close()
		}
	}
	if e.Err != nil {
		e.Err = fmt.Errorf("checkpoint: %s: %w", path, e.Err)
	}
	return e
}
