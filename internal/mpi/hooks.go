package mpi

import (
	"encoding/binary"
	"errors"
	"strings"
)

// Of the loader: what dlinfo is asked for, and the marks of a dynamic section.
const (
	linkMap          = 2 // RTLD_DI_LINKMAP
	dynamicEnd       = 0
	dynamicFini      = 26 // DT_FINI_ARRAY, relative to where the library lies
	dynamicFiniBytes = 28
)

// runHooks calls what the library has left for the end of the process, which C runs in exit
// and Go does not. MPICH 5 takes leave of its launcher there: if a process ends without that,
// the launcher believes that it has crashed, and kills the others while they end.
func (l *Library) runHooks() error {
	if !strings.HasPrefix(l.Version, "MPICH") {
		return nil
	}
	functions, err := l.finiFunctions()
	for i := len(functions) - 1; i >= 0; i-- {
		call(functions[i], arguments{})
	}
	return err
}

// finiFunctions returns the functions that the loader calls before it unloads the library.
func (l *Library) finiFunctions() ([]uintptr, error) {
	information, copier := symbolOf(l.loaded, "dlinfo"), symbolOf(l.loaded, "memcpy")
	if information == 0 || copier == 0 {
		return nil, errors.New("mpi: the loader has no dlinfo")
	}
	m, err := NewMemory(32)
	if err != nil {
		return nil, err
	}
	defer m.Free()
	words := func(at uint64) (first, second, third uint64) {
		call(copier, arguments{addressOf(m.Bytes), uintptr(at), 24})
		return binary.LittleEndian.Uint64(m.Bytes), binary.LittleEndian.Uint64(m.Bytes[8:]), binary.LittleEndian.Uint64(m.Bytes[16:])
	}
	if call(information, arguments{l.loaded, linkMap, addressOf(m.Bytes)}) != 0 {
		return nil, errors.New("mpi: dlinfo failed")
	}
	base, _, dynamic := words(binary.LittleEndian.Uint64(m.Bytes))
	var array, size uint64
	for at := dynamic; ; at += 16 {
		mark, value, _ := words(at)
		switch mark {
		case dynamicFini:
			array = base + value
		case dynamicFiniBytes:
			size = value
		case dynamicEnd:
			var found []uintptr
			for i := uint64(0); array != 0 && i < size; i += 8 {
				function, _, _ := words(array + i)
				found = append(found, uintptr(function))
			}
			return found, nil
		}
	}
}
