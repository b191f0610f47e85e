// Package nvrtc binds NVRTC, the library that compiles CUDA C++ at run time.
//
// NVRTC needs neither a GPU nor a driver. It is opened at run time: [Find]
// looks for it where CUDA toolkits and Python wheels put it, [Open] loads it,
// and [Compiler.Compile] turns a source into a cubin or PTX.
//
// Where cgo is off, and on other systems than Linux, Find and Open return
// [ErrUnsupported].
package nvrtc
