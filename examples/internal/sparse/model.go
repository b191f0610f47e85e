package sparse

import "fmt"

// Work is what an iteration takes at least, for the device with the most of each: bytes that it loads or stores, bytes that
// it sends over links, puts that must follow each other, and elements of input vectors that it loads at random. The model adds
// up what these take: nothing overlaps. Elements are found in the second-level cache, or, where the first-level cache of a
// multiprocessor holds the vector, at no cost; nothing else is found in a cache.
type Work struct {
	Memory, Link int64
	Hops         int
	Gathers      int64
}

// us is what the work takes.
func (w Work) us(r Rates) float64 {
	us := float64(w.Memory)/r.Memory/1e3 + float64(w.Link)/r.Link/1e3 + float64(w.Hops)*r.Hop
	if r.Gather > 0 {
		us += float64(w.Gathers) / r.Gather / 1e3
	}
	return us
}

func (w Work) String() string {
	return fmt.Sprintf("the model has %.3g MB of memory, %.3g MB over links, %d hops and %.3g million gathers", float64(w.Memory)/1e6, float64(w.Link)/1e6, w.Hops, float64(w.Gathers)/1e6)
}

// Bytes of an entry: a value and its column; and of a row: where its entries begin.
const (
	entryBytes = 12
	rowBytes   = 8
)

// firstLevel is how many bytes of a vector the first-level cache of a multiprocessor surely holds, on an A100 and later.
const firstLevel = 128 << 10

// Work returns what products and the trees of an iteration take. A product loads the entries, the rows' beginnings and the
// input, and stores the output. Each edge of the tree down a column of blocks moves a vector, and each of the tree along a
// row does and then adds it: two vectors are loaded and one is stored. From block to block on one device a vector is
// loaded and stored, to another it is loaded, travels, and is stored there. The longest path of a tree over n blocks has
// log2 n hops, rounded up. Beside that so many hops more follow, a block of column 0 loads or stores some vectors more, and
// vectors move from block to block.
func (x *Blocks) Work(hops int, vectors int64, moves ...[2]*Block) Work {
	vector := 8 * x.N
	n := len(x.Session.Devices)
	memory, link, gathers := make([]int64, n), make([]int64, n), make([]int64, n)
	for _, b := range x.All {
		memory[b.device] += x.N*(x.PerRow*entryBytes+rowBytes) + 2*vector
		if vector > firstLevel {
			gathers[b.device] += x.N * x.PerRow
		}
	}
	move := func(from, to *Block) {
		memory[from.device] += vector
		memory[to.device] += vector
		if from.device != to.device {
			link[from.device] += vector
		}
	}
	for child := 1; child < x.Side; child++ {
		parent := child &^ highest(child) // down columns; along rows the lowest bit goes first
		for i := range x.Side {
			move(x.Block(parent, i), x.Block(child, i))
			to := x.Block(i, child&(child-1))
			move(x.Block(i, child), to)
			memory[to.device] += 3 * vector
		}
	}
	for _, b := range x.All[:x.Side] {
		memory[b.device] += vectors * vector
	}
	for _, m := range moves {
		move(m[0], m[1])
	}
	w := Work{Hops: 2*x.rounds() + hops}
	for i := range memory {
		w.Memory, w.Link, w.Gathers = max(w.Memory, memory[i]), max(w.Link, link[i]), max(w.Gathers, gathers[i])
	}
	return w
}

// Block is that in a row and a column.
func (x *Blocks) Block(row, column int) *Block { return x.All[row+x.Side*column] }

// highest is the highest bit of a number above 0.
func highest(n int) int {
	bit := 1
	for 2*bit <= n {
		bit *= 2
	}
	return bit
}

// Takes is how long work takes by the model, in us.
func (x *Blocks) Takes(w Work) float64 { return w.us(x.Rates) }
