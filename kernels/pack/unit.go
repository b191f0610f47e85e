package pack

// unit is struct Unit of units.cu: bytes of one block, which lie place bytes from the
// origin; or a bundle of whole blocks and ends of blocks, which are shorts from place
// on. The rest is offset in the packed buffer << 19 | blocks << 13 | bytes.
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
	shortBlock  = 512 // most bytes of a block of a bundle: more keep a warp busy
	farthest    = 1 << 50
	unitAligned = 128 // where a unit begins within a block, in the packed buffer
)

// cutter cuts a list of blocks into units, some at a time.
type cutter struct {
	list   []Block
	to     []int64 // where the blocks lie in the packed buffer; nil if one after the other
	most   int64   // bytes of a unit
	at     int     // the next block
	done   int64   // bytes of it
	offset int64   // in the packed buffer
	shorts int64   // so far
}

// rest returns what there is still to cut of the block, or of the first after it that
// has any; nothing at the end of the list.
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

// isShort reports whether the block may be one of a bundle.
func (b Block) isShort() bool {
	return 0 < b.Length && b.Length <= shortBlock && -farthest <= b.Displacement && b.Displacement < farthest
}

// cut appends units, until their slice is full or the list at its end, and the blocks
// of their bundles, for which there is room.
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

// bundle returns the unit of the short blocks that come next, and appends them. One
// alone is no bundle.
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
