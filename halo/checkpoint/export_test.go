package checkpoint

// Format is the newest format version.
const Format = newest

// Small returns options with which even small fields have many shards of several chunks.
func Small(o Options) Options {
	o.chunkBytes, o.shardBytes = 512, 4096
	return o
}

// At returns options that call a function at points of a write.
func At(o Options, at func(point string)) Options {
	o.at = at
	return o
}
