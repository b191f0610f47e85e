package pack

import (
	"fmt"
	"unsafe"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// A TreeLaunch binds a tree to memory.
type TreeLaunch struct {
	Name   string // for errors
	User   streams.Span
	Origin int64        // where displacement 0 lies in User, in bytes
	Packed streams.Span // begins with the first primitive
	Blocks int          // the most thread blocks of a GPU; 0: as many as are of use
}

// Pack makes a launch ready that copies what the tree touches in User, in its order, to the start of Packed. User lies
// on the table's device or in pinned memory, Packed there too, or in memory of a peer that the device can reach. Any
// addresses will do. Those of origin and Packed should be multiples of the tree's words: else each is moved in pieces.
func (t *TreeTable) Pack(l TreeLaunch) (*streams.Kernel, error) {
	return t.launch(l, t.packer.pack, l.User, l.Packed, func() { t.packHost(launch.Values[byte](l.User), launch.Values[byte](l.Packed), l.Origin) })
}

// Unpack makes a launch ready that copies the start of Packed to where the tree touches User, and nothing else there.
// Packed lies on the table's device or in pinned memory, User there too, or in memory of a peer that the device can
// reach. If the tree touches a byte more than once, which of its values stays is not defined.
func (t *TreeTable) Unpack(l TreeLaunch) (*streams.Kernel, error) {
	return t.launch(l, t.packer.unpack, l.Packed, l.User, func() { t.unpackHost(launch.Values[byte](l.User), launch.Values[byte](l.Packed), l.Origin) })
}

func (t *TreeTable) launch(l TreeLaunch, functions [2]streams.Function, from, to streams.Span, run func()) (*streams.Kernel, error) {
	spec := streams.KernelSpec{Name: l.Name, Run: run}
	switch {
	case t.tree.Primitives == 0:
		spec.Run = func() {}
	case !t.fits(l):
		return nil, fmt.Errorf("pack: %s: %d bytes within [%d, %d) of byte %d of %v do not fit there, or not into %v",
			l.Name, t.tree.Size, t.tree.Lo, t.tree.Hi, l.Origin, l.User, l.Packed)
	case l.Blocks < 0:
		return nil, fmt.Errorf("pack: %s: %d thread blocks", l.Name, l.Blocks)
	default:
		spec.Reaches = []streams.Span{from, to}
	}
	t.onGPU(&spec, l, functions)
	return launch.New(t.packer.device, spec)
}

// fits reports whether the tree, bound so, lies in its memory.
func (t *TreeTable) fits(l TreeLaunch) bool {
	return l.Origin >= -t.tree.Lo && l.Origin <= l.User.Length-t.tree.Hi && l.Packed.Length >= t.tree.Size
}

// onGPU gives the launch its CUDA form. Ids have 32 bits if all fit into 31.
func (t *TreeTable) onGPU(spec *streams.KernelSpec, l TreeLaunch, functions [2]streams.Function) {
	spec.Function = functions[0]
	if t.tree.Primitives > 1<<31-1 {
		spec.Function = functions[1]
	}
	blocks := max(1, launch.FlatGrid(t.tree.Primitives))
	if l.Blocks > 0 {
		blocks = min(blocks, l.Blocks)
	}
	spec.Grid, spec.Block = [3]int{blocks, 1, 1}, [3]int{launch.BlockSize, 1, 1}
	arg := treeArgs{primitives: t.tree.Primitives}
	if arg.primitives > 0 {
		spec.Shared = len(t.nodes) * int(unsafe.Sizeof(treeNode{}))
		t.bind(&arg, l)
		for _, part := range t.onDevice {
			if part.Memory != nil {
				spec.Uses = append(spec.Uses, part)
			}
		}
	}
	spec.Argument = launch.Argument(&arg)
}

// bind fills in the addresses. Words are moved whole if both addresses are multiples of them.
func (t *TreeTable) bind(arg *treeArgs, l TreeLaunch) {
	arg.nodes, arg.lookAside = t.onDevice[0].Address(), t.onDevice[1].Address()
	arg.words = int64(len(t.nodes)) * int64(unsafe.Sizeof(treeNode{})) / 8
	arg.user, arg.packed = l.User.Address()+uint64(l.Origin+t.tree.Base), l.Packed.Address()
	arg.memoryAlignment, arg.packAlignment = wordOf(arg.user), wordOf(arg.packed)
	if t.tree.Word <= min(arg.memoryAlignment, arg.packAlignment) {
		arg.word = t.tree.Word
	}
}

// wordOf returns the greatest word, of at most 16 bytes, that an address is a multiple of.
func wordOf(address uint64) int64 {
	address |= 16
	return int64(address & -address)
}
