package links

import (
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// fabric is the links that are measured.
type fabric struct {
	links    *p2p.Links
	compiler *kernels.Compiler
	largest  int64         // message
	tried    map[hop]error // what came of the random bytes
}

func newFabric(links *p2p.Links, compiler *kernels.Compiler, largest int64) *fabric {
	return &fabric{links, compiler, largest, map[hop]error{}}
}

// passable returns an error unless the hop can be tried.
func (f *fabric) passable(h hop) error {
	if h.from.device == h.to.device {
		return nil
	}
	if _, _, err := f.links.Choose(p2p.Path(h.path), h.from.device, h.to.device, p2p.MessageShape{}); err != nil {
		return &impassable{err}
	}
	return nil
}

// kind is that of the link of all hops, "" where they differ or have none.
func (f *fabric) kind(hops ...hop) string {
	kind := ""
	for i, h := range hops {
		link := f.links.Between(h.from.device, h.to.device)
		if link == nil || i > 0 && link.Kind != kind {
			return ""
		}
		kind = link.Kind
	}
	return kind
}

// Paths returns the paths of messages that can be measured.
func Paths() []string { return option.Texts(p2p.LinksFirst()) }
