package nvrtc

// Source is a translation unit: the main file, and the headers that it and they include.
type Source struct {
	Name    string // what messages call it, as a file name
	Text    string // CUDA C++
	Headers []Header
}

// Header is what #include "Name" stands for.
type Header struct{ Name, Text string }

// Result is what came of a source.
type Result struct {
	// Image is a cubin when the options name a real architecture (sm_90), and
	// PTX text without a final zero when they name a virtual one (compute_90).
	Image []byte
	// Log has the warnings, and the usage that [ParseUsage] reads.
	Log string
}
