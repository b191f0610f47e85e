//go:build unix

package streams

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sharedFolders are where files of shared memory may be.
var sharedFolders = []string{"/dev/shm", os.TempDir()}

func newSharedBytes(bytes int64) (s *SharedBytes, err error) {
	for _, folder := range sharedFolders {
		if s, err = newSharedFile(filepath.Join(folder, "halox-"+rand.Text()), bytes); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", errUnshared, err)
}

// newSharedFile writes the file, so that it is an error now, and not a signal later, if there is too little space.
func newSharedFile(name string, bytes int64) (s *SharedBytes, err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			s, err = nil, errors.Join(err, os.Remove(name))
		}
	}()
	zeros := make([]byte, min(bytes, 1<<20))
	for left := bytes; left > 0; left -= int64(len(zeros)) {
		if _, err := f.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			return nil, err
		}
	}
	return mapShared(f, bytes)
}

func openSharedBytes(name string, bytes int64) (s *SharedBytes, err error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnshared, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || info.Size() != bytes {
		return nil, errors.Join(errShortFile, err)
	}
	return mapShared(f, bytes)
}

func mapShared(f *os.File, bytes int64) (*SharedBytes, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map shared memory: %w", err)
	}
	return &SharedBytes{b, f.Name()}, nil
}

// Unlink removes the name of the file, which stays mapped.
func (s *SharedBytes) Unlink() error {
	if err := os.Remove(s.Name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Close ends the mapping of this process, and removes the name of the file. Closing twice is allowed.
func (s *SharedBytes) Close() error {
	if s.Bytes == nil {
		return nil
	}
	b := s.Bytes
	s.Bytes = nil
	return errors.Join(unix.Munmap(b), s.Unlink())
}
