package packing

import (
	"sync"

	"github.com/halox/halox/halo/datatype"
)

// layoutCache holds the tables of a packer on its device, by layout or type.
type layoutCache struct {
	mu    sync.Mutex
	items map[any]any
}

// The keys of a layout cache.
type (
	blocksKey struct {
		layout datatype.Key
		equal  bool
	}
	unitsKey struct{ layout datatype.Key }
	equalKey struct {
		t     *datatype.Type
		count int
	}
	treeKey struct {
		t         *datatype.Type
		count     int
		alignment int64
	}
)
