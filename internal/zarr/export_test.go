package zarr

// NewOf is New with the largest chunks and shards in bytes.
var NewOf = newArray

// SetMaxChunk sets the size of the largest chunk that is read, in bytes, and returns a function that resets it.
func SetMaxChunk(bytes int) (reset func()) {
	old := maxChunk
	maxChunk = bytes
	return func() { maxChunk = old }
}
