package sparse

import "fmt"

// Work is what an iteration takes at least, for the device with the most of each: bytes that it loads or stores, bytes that
// it sends over links, and puts that must follow each other. The model adds up what these take: nothing overlaps, and
// nothing is found in a cache.
type Work struct {
	Memory, Link int64
	Hops         int
}

// us is what the work takes.
func (w Work) us(r Rates) float64 {
	return float64(w.Memory)/r.Memory/1e3 + float64(w.Link)/r.Link/1e3 + float64(w.Hops)*r.Hop
}

func (w Work) String() string {
	return fmt.Sprintf("the model has %.3g MB of memory, %.3g MB over links and %d hops", float64(w.Memory)/1e6, float64(w.Link)/1e6, w.Hops)
}

// Bytes of an entry: a value and its column; and of a row: where its entries begin.
const (
	entryBytes = 12
	rowBytes   = 8
)

// Work returns what products and the trees of an iteration take. A product loads the entries, the rows' beginnings and the
// input, and stores the output. Each edge of the tree down a column of blocks moves a vector, and each of the tree along a
// row does and then adds it: two vectors are loaded and one is stored. From block to block on one device a vector is
// loaded and stored, to another it is loaded, travels, and is stored there. The longest path of a tree over n blocks has
// log2 n hops, rounded up. Beside that so many hops more follow, a block of column 0 loads or stores some vectors more, and
// vectors move from block to block.
func (x *Blocks) Work(hops int, vectors int64, moves ...[2]*Block) Work {
	vector := 8 * x.N
	memory, link := make([]int64, len(x.Session.Devices)), make([]int64, len(x.Session.Devices))
	for _, b := range x.All {
		memory[b.device] += x.N*(x.PerRow*entryBytes+rowBytes) + 2*vector
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
		w.Memory, w.Link = max(w.Memory, memory[i]), max(w.Link, link[i])
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
