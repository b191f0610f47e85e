// Package flags has devices, streams and the host wait for each other by counts in memory. A Network
// lays out those of kernels that wait for other devices while they run. A Gate holds a stream until
// the host opens it, and a PingPong measures how long a flag takes from one device to another.
package flags
