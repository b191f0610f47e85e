// Package ranks runs kernels whose thread blocks are ranks: they put data into each other's memory and notify
// each other while they run, on one GPU or on several, so that some compute while the data of others is under
// way. The model is dCUDA's (Gysi, Bär and Hoefler 2016; Kuster 2017).
//
// A Program is a kernel in CUDA C++ that includes ranks.cuh, which has the functions that it calls, and its twin
// in Go for host devices, whose ranks are goroutines with a Rank. A World has the ranks of some devices, and Run
// runs the program on them.
package ranks
