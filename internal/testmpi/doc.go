// Package testmpi runs tests as several processes under the launchers of the MPI libraries
// that this machine has: the test program starts itself again, under mpiexec, and each of
// these processes carries out one of its programs.
package testmpi
