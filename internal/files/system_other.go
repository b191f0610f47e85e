//go:build !unix

package files

// NoWait is a flag for os.OpenFile; here no file is waited for.
const NoWait = 0

// syncFolder does nothing: on Windows atomic.ReplaceFile brings the name to the disk.
func syncFolder(string) error { return nil }
