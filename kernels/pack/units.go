package pack

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// unit is struct Unit of units.cu: bytes of one block at place bytes from the origin, or a bundle of whole blocks
// and ends of blocks, which are shorts from index place on. rest is the offset in the packed buffer << 19 | blocks
// << 13 | bytes.
type unit struct {
	place int64
	rest  uint64
}

func newUnit(place, offset, blocks, bytes int64) unit {
	return unit{place, uint64(offset)<<19 | uint64(blocks)<<13 | uint64(bytes)}
}

func (u unit) offset() int64 { return int64(u.rest >> 19) }
func (u unit) blocks() int64 { return int64(u.rest >> 13 & 63) }
func (u unit) bytes() int64  { return int64(u.rest & (1<<13 - 1)) }

// short is a block of a bundle: its displacement << 13 | its length.
type short int64

func (s short) displacement() int64 { return int64(s) >> 13 }
func (s short) length() int64       { return int64(s) & (1<<13 - 1) }

const (
	bundled     = 32  // most blocks of a bundle, one for each thread of a warp
	shortBlock  = 512 // most bytes of a block of a bundle: longer ones keep a warp busy
	farthest    = 1 << 50
	unitAligned = 128 // alignment of units within a block, in the packed buffer
)

// cutter cuts a list of blocks into units, some at a time.
type cutter struct {
	list   []Block
	to     []int64 // locations of the blocks in the packed buffer; nil if consecutive
	most   int64   // bytes of a unit
	at     int     // index of the next block
	done   int64   // bytes of it that are done
	offset int64   // in the packed buffer
	shorts int64   // number so far
}

// rest returns the rest of the current block, or the first non-empty block after it; empty at the end of the list.
func (c *cutter) rest() Block {
	for c.at < len(c.list) {
		if c.done == 0 && c.to != nil {
			c.offset = c.to[c.at]
		}
		if b := c.list[c.at]; b.Length > c.done {
			return Block{b.Displacement + c.done, b.Length - c.done}
		}
		c.at, c.done = c.at+1, 0
	}
	return Block{}
}

// isShort reports whether the block may be part of a bundle.
func (b Block) isShort() bool {
	return 0 < b.Length && b.Length <= shortBlock && -farthest <= b.Displacement && b.Displacement < farthest
}

// cut appends units until their slice is full or the list ends, and the blocks of their bundles, for which there
// must be capacity.
func (c *cutter) cut(units []unit, shorts []short) ([]unit, []short) {
	for len(units) < cap(units) {
		b := c.rest()
		switch {
		case b.Length == 0:
			return units, shorts
		case b.isShort():
			var u unit
			u, shorts = c.bundle(shorts)
			units = append(units, u)
		default:
			n := min(b.Length, c.most-c.offset%unitAligned)
			units = append(units, newUnit(b.Displacement, c.offset, 1, n))
			c.done, c.offset = c.done+n, c.offset+n
		}
	}
	return units, shorts
}

// bundle returns the unit of the next short blocks, and appends them. A single block is not a bundle.
func (c *cutter) bundle(shorts []short) (unit, []short) {
	first, start, before := c.rest(), c.offset, len(shorts)
	end := start
	for len(shorts)-before < bundled {
		b := c.rest()
		if !b.isShort() || c.offset != end || c.offset-start+b.Length > c.most {
			break
		}
		shorts = append(shorts, short(b.Displacement<<13|b.Length))
		c.done, c.offset = c.done+b.Length, c.offset+b.Length
		end = c.offset
	}
	blocks := int64(len(shorts) - before)
	if blocks == 1 {
		return newUnit(first.Displacement, start, 1, end-start), shorts[:before]
	}
	u := newUnit(c.shorts, start, blocks, end-start)
	c.shorts += blocks
	return u, shorts
}

// UnitPacker packs and unpacks lists of blocks on one device as in Wu et al. (HPDC 2016, section 3.2): the host
// cuts the blocks into work units of similar sizes, which the warps of the device copy one after the other. The
// host cuts while the device copies earlier units. Beyond the paper, short blocks share units.
type UnitPacker struct {
	resources streams.Resources
	device    *streams.Device
	units     streams.Function // nil on CPU devices
	mu        sync.Mutex       // only one list at a time is cut
	stages    [2]stage
}

// stage is a pinned buffer for units on their way from the host to the device.
type stage struct {
	memory *streams.Memory // units, then shorts
	copied *streams.Event  // the device has read them
}

// maxUnits is the largest number of units that are cut before they are copied to the device.
const maxUnits = 4096

const (
	unitBytes  = int64(unsafe.Sizeof(unit{}))
	shortBytes = int64(unsafe.Sizeof(short(0)))
)

// unitsArgs is struct Units of units.cu.
type unitsArgs struct {
	units, shorts   uint64
	strided, packed uint64
	first, count    int64
	unpack          int64
}

func unitsProgram() kernels.Program {
	return kernels.Program{File: "units.cu", Mirrors: []kernels.Mirror{
		{Name: "Units", Value: unitsArgs{}}, {Name: "Unit", Value: unit{}},
		{Name: "sizeof(Short)", Value: int(shortBytes)}, {Name: "WARP", Value: bundled},
	}}
}

// NewUnitPacker compiles the kernel for the device.
func NewUnitPacker(c *kernels.Compiler, d *streams.Device) (*UnitPacker, error) {
	found, err := c.Load(d, unitsProgram(), "units")
	if err != nil {
		return nil, err
	}
	return newUnitPacker(d, found[0])
}

func newUnitPacker(d *streams.Device, units streams.Function) (*UnitPacker, error) {
	u := &UnitPacker{device: d, units: units}
	for i := range u.stages {
		memory := u.resources.AllocPinned(d, maxUnits*(unitBytes+bundled*shortBytes))
		u.stages[i] = stage{memory, u.resources.NewEvent(d)}
	}
	return u, u.resources.Done()
}

// room returns the stage as slices for some units and the blocks of their bundles.
func (s *stage) room(units int) ([]unit, []short) {
	bytes, middle := s.memory.Bytes(), maxUnits*unitBytes
	return streams.View[unit](bytes[:middle])[:0:units], streams.View[short](bytes[middle:])[:0]
}

// UnitOptions configures a UnitPacker. The zero value suits most lists.
type UnitOptions struct {
	Unit      int // most bytes of a unit: 1024, 2048 or 4096; default: automatic
	Part      int // units that are cut before they are copied to the device, up to 4096; default: 4096
	MaxBlocks int // thread blocks of a launch (Wu et al., section 5.3); default: suited to the device
	// Ahead cuts the whole list before the launch, instead of while the device copies earlier units. Default false.
	Ahead bool
}

// check returns an error unless the options are valid.
func (u UnitOptions) check() error {
	switch {
	case !slices.Contains([]int{0, 1024, 2048, 4096}, u.Unit):
		return fmt.Errorf("pack: unit: must be 1024, 2048 or 4096 bytes, got %d", u.Unit)
	case u.Part < 0 || u.Part > maxUnits:
		return fmt.Errorf("pack: part: must be between 0 and %d units, got %d", maxUnits, u.Part)
	case u.MaxBlocks < 0:
		return fmt.Errorf("pack: number of thread blocks: must be at least 0, got %d", u.MaxBlocks)
	}
	return nil
}

// withDefaults returns the options with automatic values for the given bytes. Small units distribute few bytes
// over the device; large units keep the table of many bytes small.
func (u UnitOptions) withDefaults(size int64) UnitOptions {
	if u.Part == 0 {
		u.Part = maxUnits
	}
	switch {
	case u.Unit > 0:
	case size < 64<<20:
		u.Unit = 1024
	case size < 256<<20:
		u.Unit = 2048
	default:
		u.Unit = 4096
	}
	return u
}

// UnitTable is a list of blocks cut into units, in the memory of a device. It does not depend on the memory that
// is packed and unpacked. The list is cut when the first copy of the table is queued.
type UnitTable struct {
	resources          streams.Resources
	packer             *UnitPacker
	options            UnitOptions
	reach              extent
	count, countShorts int64
	units, shorts      *streams.Memory

	cut   atomic.Bool // the list is cut, and the device has all units
	mu    sync.Mutex  // guards the fields below
	list  []Block     // nil once it is cut
	to    []int64     // see Scatter
	ready *streams.Event
	err   error // permanent error of the cutting
}

// Table builds a table of the blocks, which must not change until the first copy of the table has been queued.
func (u *UnitPacker) Table(list []Block, o UnitOptions) (t *UnitTable, err error) {
	return u.Scatter(nil, list, o)
}

// Scatter builds a table of blocks that are not consecutive at the other end either: to holds the offset of each
// there, in bytes. Such a table copies directly from one layout to another, without a packed buffer.
func (u *UnitPacker) Scatter(to []int64, list []Block, o UnitOptions) (t *UnitTable, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t = &UnitTable{packer: u, to: to}
	if t.reach, err = extentOf(list); err != nil {
		return nil, err
	}
	if to != nil {
		if t.reach.size, err = endOf(to, list); err != nil {
			return nil, err
		}
	}
	t.options = o.withDefaults(t.reach.size)
	t.list = list
	t.cut.Store(t.reach.size == 0)
	if err := t.measure(); err != nil {
		return nil, err
	}
	t.units = t.resources.Alloc(u.device, max(1, t.count)*unitBytes)
	t.shorts = t.resources.Alloc(u.device, max(1, t.countShorts)*shortBytes)
	t.ready = t.resources.NewEvent(u.device)
	return t, t.resources.Done()
}

// cutter returns a cutter at the start of the list.
func (t *UnitTable) cutter() cutter {
	return cutter{list: t.list, to: t.to, most: int64(t.options.Unit)}
}

// endOf returns the largest end of the blocks at the given offsets.
func endOf(to []int64, list []Block) (end int64, err error) {
	if len(to) != len(list) {
		return 0, fmt.Errorf("pack: scatter: must have one offset per block, got %d for %d blocks", len(to), len(list))
	}
	for i, b := range list {
		if to[i] < 0 || to[i] >= maxPacked-b.Length {
			return 0, fmt.Errorf("pack: scatter: offset of block %d must be between 0 and %d, got %d",
				i, int64(maxPacked),
				to[i])
		}
		end = max(end, to[i]+b.Length)
	}
	return end, nil
}

// measure counts the units and the blocks of bundles.
func (t *UnitTable) measure() error {
	const some, most = 256, 1<<31 - 1
	c, units, shorts := t.cutter(), make([]unit, 0, some), make([]short, 0, some*bundled)
	for {
		cut, _ := c.cut(units, shorts)
		if len(cut) == 0 {
			break
		}
		t.count += int64(len(cut))
	}
	t.countShorts = c.shorts
	if t.count > most {
		return fmt.Errorf("pack: number of units must be at most %d, got %d", most, t.count)
	}
	return nil
}

// UnitCopy is a prepared copy of the blocks of a table.
type UnitCopy struct {
	resources   streams.Resources
	table       *UnitTable
	whole, part *streams.Kernel // of all units; of the units cut next
}

// Copy prepares a copy of the blocks.
func (t *UnitTable) Copy(p Passage) (*UnitCopy, error) {
	if err := t.reach.fits(p); err != nil {
		return nil, err
	}
	u := &UnitCopy{table: t}
	next := int64(0) // start of the next part, on a CPU device
	for _, l := range []struct {
		to    **streams.Kernel
		count int64
		run   func()
	}{
		{&u.whole, t.count, func() { t.copyUnits(p, 0, t.count) }},
		{&u.part, min(t.count, int64(t.options.Part)),
			func() { next = t.copyUnits(p, next, min(t.count, next+int64(t.options.Part))) }},
	} {
		spec := t.spec(p, l.count)
		spec.Run = l.run
		streams.Into(&u.resources, l.to)(launch.New(t.packer.device, spec))
	}
	return u, u.resources.Done()
}

// spec returns the launch of the first units.
func (t *UnitTable) spec(p Passage, count int64) streams.KernelSpec {
	const warps = launch.BlockSize / 32
	spec := streams.KernelSpec{
		Name: p.name() + " units", Function: t.packer.units,
		Uses: []streams.Span{t.units.All(), t.shorts.All()}, Reaches: []streams.Span{p.Packed, p.Strided},
		Grid:  listGrid(t.packer.device, (count+warps-1)/warps, t.options.MaxBlocks),
		Block: [3]int{launch.BlockSize, 1, 1},
	}
	arg := unitsArgs{units: t.units.Address(), shorts: t.shorts.Address(), count: count}
	arg.strided, arg.packed, arg.unpack = p.addresses()
	spec.Argument = launch.Argument(&arg)
	return spec
}

// Queue queues the copy. The first queued copy of a table cuts the list: in parts, each with a launch that runs
// while the next part is cut. Each later copy is one launch, and does not allocate. A copy may be queued
// repeatedly while its table is open, by one thread at a time; copies of one table may be queued by several
// threads.
func (u *UnitCopy) Queue(s *streams.Stream) error {
	if !u.table.cut.Load() {
		if queued, err := u.table.prepare(u, s); queued || err != nil {
			return err
		}
	}
	return s.Launch(u.whole)
}

// prepare makes sure that the stream has the units before later work. If the list was not cut yet, it cuts it and
// queues the copy.
func (t *UnitTable) prepare(u *UnitCopy, s *streams.Stream) (queued bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return false, t.err
	case t.list != nil:
		t.err = t.cutAndCopy(u, s)
		t.list = nil
		return true, t.err
	}
	done, err := t.ready.Done()
	if err != nil {
		return false, err
	}
	if done {
		t.cut.Store(true)
		return false, nil
	}
	return false, s.Wait(t.ready)
}

// cutAndCopy cuts the list into parts and queues each, with the copy of its blocks.
func (t *UnitTable) cutAndCopy(u *UnitCopy, s *streams.Stream) error {
	p := t.packer
	if s.Device() != p.device {
		return fmt.Errorf("pack: stream must belong to device %v, got one of %v", p.device, s.Device())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := t.cutter()
	for first, n := int64(0), 0; first < t.count; n++ {
		stage, shorts := &p.stages[n%len(p.stages)], c.shorts
		if err := stage.copied.Sync(streams.UploadLimit); err != nil {
			return err
		}
		units, blocks := stage.room(t.options.Part)
		units, blocks = c.cut(units, blocks)
		if err := t.bring(s, stage, first, int64(len(units)), shorts, int64(len(blocks))); err != nil {
			return err
		}
		if !t.options.Ahead {
			if err := u.queuePart(s, first, int64(len(units))); err != nil {
				return err
			}
		}
		first += int64(len(units))
	}
	if t.options.Ahead {
		return errors.Join(s.Record(t.ready), s.Launch(u.whole))
	}
	return s.Record(t.ready)
}

// bring queues the copies of units and blocks from the stage to their location in the table.
func (t *UnitTable) bring(s *streams.Stream, from *stage, first, units, firstShort, shorts int64) error {
	return errors.Join(
		s.Copy(t.units.Span(first*unitBytes, units*unitBytes), from.memory.Span(0, units*unitBytes)),
		s.Copy(t.shorts.Span(firstShort*shortBytes, shorts*shortBytes),
			from.memory.Span(maxUnits*unitBytes, shorts*shortBytes)),
		s.Record(from.copied),
	)
}

// queuePart queues the copy of some units. A CPU device counts them itself.
func (u *UnitCopy) queuePart(s *streams.Stream, first, units int64) error {
	if a := u.part.Argument(); a != nil {
		var args unitsArgs
		at := streams.View[int64](a[unsafe.Offsetof(args.first):][:16])
		at[0], at[1] = first, units
	}
	return s.Launch(u.part)
}

// copyUnits is the Go counterpart of kernel units, for units first to end. It returns the end.
func (t *UnitTable) copyUnits(p Passage, first, end int64) int64 {
	units, shorts, h := launch.Values[unit](t.units.All()), launch.Values[short](t.shorts.All()), p.host()
	for _, u := range units[first:end] {
		if u.blocks() == 1 {
			h.move(u.place, u.offset(), u.bytes())
			continue
		}
		offset := u.offset()
		for _, s := range shorts[u.place : u.place+u.blocks()] {
			h.move(s.displacement(), offset, s.length())
			offset += s.length()
		}
	}
	return end
}

// Close frees the memory. Closing twice is allowed.
func (u *UnitCopy) Close() error { return u.resources.Close() }

// Close frees the memory. Closing twice is allowed.
func (u *UnitPacker) Close() error { return u.resources.Close() }

// Close frees the memory. Closing twice is allowed.
func (t *UnitTable) Close() error { return t.resources.Close() }
