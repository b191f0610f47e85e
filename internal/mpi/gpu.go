package mpi

// The functions by which libraries say whether they take addresses of GPUs: of MPICH and of Open MPI. MPICH has both.
const (
	queryGPU  = "MPIX_GPU_query_support"
	queryCUDA = "MPIX_Query_cuda_support"
)

// ofCUDA is MPIX_GPU_SUPPORT_CUDA.
const ofCUDA = 0

// SaysGPU reports whether the library says that messages may lie in the memory of CUDA devices, and names the function by
// which it does, or that it has none. Libraries have been wrong both ways. MPI must run.
func (l *Library) SaysGPU() (says bool, by string, err error) {
	if at := symbolOf(l.loaded, queryGPU); at != 0 {
		f, err := l.frames.take()
		if err != nil {
			return false, queryGPU, err
		}
		defer l.frames.give(f)
		f.put(0)
		if code := call(at, arguments{ofCUDA, f.request()}); code == 0 && f.int32At(0) != 0 {
			return true, queryGPU, nil
		}
	}
	if at := symbolOf(l.loaded, queryCUDA); at != 0 {
		return call(at, arguments{}) == 1, queryCUDA, nil
	}
	return false, queryGPU + " and " + queryCUDA, nil
}
