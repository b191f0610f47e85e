package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/halox/halox/internal/files"
)

const (
	lockName    = ".halox-lock"
	lockLimit   = 5 * time.Second // longest wait for a process that is ending
	leftoverAge = 24 * time.Hour  // of folders whose writer must be gone, where files cannot be locked
)

// ErrOtherRun is the error of NewWriter if a folder has checkpoints of another run.
var ErrOtherRun = errors.New("it has checkpoints of another run")

// folder is a folder of checkpoints, as the process that commits them sees it.
type folder struct {
	path   string
	lock   *os.File
	locked bool // false where files cannot be locked
}

// openFolder makes the folder, unless it exists, locks it, and removes what writers have left that were killed.
func openFolder(ctx context.Context, path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, lock: lock}
	if err = f.acquire(ctx); err == nil {
		err = f.removeLeftovers()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// acquire locks the folder, if its file system has locks.
func (f *folder) acquire(ctx context.Context) (err error) {
	for end := time.Now().Add(lockLimit); ; {
		f.locked, err = tryLock(f.lock)
		switch {
		case f.locked, errors.Is(err, errors.ErrUnsupported):
			return nil
		case err != nil:
			return fmt.Errorf("lock %s: %w", f.lock.Name(), err)
		case time.Now().After(end):
			return errors.New("another process writes checkpoints to it")
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// temporary matches the folders of unfinished and of removed checkpoints.
var temporary = regexp.MustCompile(`^\.step-[0-9]+-[0-9a-f]{16}$`)

func temporaryName(step int64) string { return fmt.Sprintf(".step-%d-%016x", step, rand.Uint64()) }

// removeLeftovers removes temporary folders. They are of dead processes if this one has the lock.
func (f *folder) removeLeftovers() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !temporary.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if !f.locked && (err != nil || time.Since(info.ModTime()) < leftoverAge) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(f.path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless the path still leads to the folder that was opened: it may have been unmounted, and
// then the path may be a folder of another file system.
func (f *folder) check() error {
	opened, err := f.lock.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(f.lock.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(opened, there) {
		return errors.New("it is no longer the folder in which the run began: it was removed, replaced or unmounted")
	}
	return err
}

// begin makes a temporary folder for a checkpoint.
func (f *folder) begin(step int64) (path string, err error) {
	if err := f.check(); err != nil {
		return "", err
	}
	path = filepath.Join(f.path, temporaryName(step))
	return path, os.Mkdir(path, 0o777)
}

// commit writes the manifest of a checkpoint whose other files are on disk, and renames its temporary folder. An
// existing checkpoint of the step is kept under another name, until removeOthers.
func (f *folder) commit(temp string, m Manifest) error {
	if err := f.check(); err != nil {
		return err
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	if err := files.Write(filepath.Join(temp, manifestName), text); err != nil {
		return err
	}
	path := filepath.Join(f.path, folderOf(m.Step))
	if _, exists := os.Lstat(path); exists == nil {
		replace := func() error { return os.Rename(path, path+oldSuffix) }
		if _, exists := os.Lstat(path + oldSuffix); exists == nil {
			replace = func() error { return f.remove(path) }
		}
		if err := replace(); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return files.SyncFolder(f.path)
}

// remove removes a checkpoint, which other processes see whole or not at all.
func (f *folder) remove(path string) error {
	step, _ := stepOf(filepath.Base(path))
	temp := filepath.Join(f.path, temporaryName(step))
	if err := os.Rename(path, temp); err != nil {
		return err
	}
	return os.RemoveAll(temp)
}

// removeOthers removes checkpoints of the run, when that of a step is whole: all except the newest of a number up to
// this step. Later ones are those of a run that was continued from before them. It leaves checkpoints of other runs,
// and those without a readable manifest.
func (f *folder) removeOthers(run string, step int64, keep int) error {
	all, err := List(f.path)
	if err != nil {
		return err
	}
	kept, last := 0, int64(-1)
	for _, e := range all {
		if e.Run != run {
			continue
		}
		if e.Err == nil && e.Step <= step && e.Step != last && kept < keep {
			kept, last = kept+1, e.Step
			continue
		}
		err = errors.Join(err, f.remove(e.Path))
	}
	return err
}

// close unlocks the folder.
func (f *folder) close() error { return f.lock.Close() }
