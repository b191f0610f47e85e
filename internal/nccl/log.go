package nccl

import (
	"errors"
	"os"
	"regexp"
	"slices"
)

// Log is what NCCL writes while it connects devices, which alone says over what.
type Log struct{ path string } // "" where a user has asked for NCCL's log

// The variables that say what NCCL writes, and where.
const (
	debugVariable = "NCCL_DEBUG"
	fileVariable  = "NCCL_DEBUG_FILE"
)

// StartLog has NCCL keep a log, unless a user has asked for one. It comes before the first call of NCCL.
func StartLog() (*Log, error) {
	if os.Getenv(debugVariable) != "" || os.Getenv(fileVariable) != "" {
		return &Log{}, nil
	}
	f, err := os.CreateTemp("", "halox-nccl-*.log")
	if err != nil {
		return nil, err
	}
	return &Log{f.Name()}, errors.Join(f.Close(), os.Setenv(fileVariable, f.Name()), os.Setenv(debugVariable, "INFO"))
}

// via finds what NCCL says of a connection: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM".
var via = regexp.MustCompile(`(?m) -> \d+\[[0-9a-f]+\](?: \[\w+\])? via ([\w/.-]+)`)

// Transports returns over what NCCL has connected devices until now, in its words, each once: "P2P/CUMEM", "NET/IB/0". It is nil
// where that is not known.
func (l *Log) Transports() (all []string) {
	if l.path == "" {
		return nil
	}
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil
	}
	for _, found := range via.FindAllSubmatch(text, -1) {
		if name := string(found[1]); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Close ends the log.
func (l *Log) Close() error {
	if l.path == "" {
		return nil
	}
	path := l.path
	l.path = ""
	return errors.Join(os.Unsetenv(debugVariable), os.Unsetenv(fileVariable), os.Remove(path))
}
