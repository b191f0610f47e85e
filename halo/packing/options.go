package packing

import "github.com/halox/halox/kernels/pack"

// Options say how the engines work. The zero value lets each do as suits it.
type Options struct {
	Blocks    int       // thread blocks that a kernel may take at most; 0 for as many as suit
	UnitBytes int       // of a work unit: 1024, 2048 or 4096; 0 for what suits (units)
	Loop      pack.Loop // what a thread copies one after the other (targeted, transform)
	Scan      pack.Scan // how prefix sums are made (bypass)
	Sums      pack.Sums // how they lie in shared memory (bypass)
	Lanes     int       // threads along a block, a power of two up to 256; 0 for what suits (bypass, targeted of blocks of one length)
	Pinned    bool      // the list of blocks stays in pinned host memory (bypass)
	Primitive bool      // a thread moves one primitive, not a wide word (tree)
	Cache     string    // folder of the cache, for what Auto measures; where empty the one that HALOX_CACHE names, else the user's
	// Predict has Auto take the engine that a model, fitted to what was measured before,
	// says is fastest, and measure only where the model cannot tell. It is for programs
	// that make many layouts and use each a few times, as adaptive meshes do.
	Predict bool
}

// strided and listed are the options of the kernels.
func (o Options) strided() pack.StridedOptions {
	return pack.StridedOptions{MaxBlocks: o.Blocks, Loop: o.Loop}
}

func (o Options) listed(equal bool) pack.BlockOptions {
	return pack.BlockOptions{Equal: equal, Pinned: o.Pinned, Scan: o.Scan, Sums: o.Sums, Lanes: o.Lanes, MaxBlocks: o.Blocks}
}
