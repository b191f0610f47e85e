// Package source writes what the compiler is given beside the files of kernels/cu: its options, and
// stencils as CUDA C++.
package source

// Options returns those of NVRTC for a target, as "sm_90", and definitions NAME=VALUE. Products and
// sums are not contracted, so that the Go form of a kernel gives the same bits.
func Options(target string, defines ...string) []string {
	options := []string{
		"--gpu-architecture=" + target, "--std=c++17", "--fmad=false", "-lineinfo", "-default-device",
	}
	for _, d := range defines {
		options = append(options, "--define-macro="+d)
	}
	return options
}
