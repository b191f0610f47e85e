package files

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// A process that is killed while it writes leaves its temporary file behind. Whoever
// next writes to the folder removes those that nobody can be writing any more.

const (
	leftoverAge = 24 * time.Hour // since the last write to the file
	mostNames   = 4096           // of a folder that are looked at
)

func tempName() string { return fmt.Sprintf(".halox-%016x", rand.Uint64()) }

var tempNames = regexp.MustCompile(`^\.halox-[0-9a-f]{16}$`)

// removeLeftovers removes the temporary files in a folder that are old enough, as far as
// it may.
func removeLeftovers(folder string) {
	f, err := os.Open(folder)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostNames)
	for _, name := range names {
		if path := filepath.Join(folder, name); tempNames.MatchString(name) && old(path) {
			os.Remove(path)
		}
	}
}

func old(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge
}
