package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/halox/halox/internal/files"
)

const (
	lockName  = "lock"
	lockLimit = 10 * time.Second
	lockRetry = 2 * time.Millisecond
)

// lock takes the folder for this goroutine, as soon as no other of any process has it. A
// process that ends gives it back, however it ends. Where there are no locks, none is
// taken: an update that gets lost is measured again.
func (f Folder) lock() (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	l := flock.New(filepath.Join(f.path, lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR|files.NoWait), flock.SetPermissions(0o644))
	if _, err := l.TryLockContext(ctx, lockRetry); errors.Is(err, context.DeadlineExceeded) {
		return nil, errors.New("another process has it locked")
	}
	return l.Unlock, nil
}
