// Package datatypes measures the engines that pack MPI datatypes, on the layouts of benchmarks and
// papers: on one device by [PackOptions], and on their way from one device to another and back by
// [PingPongOptions]. It draws the papers' figures of what was measured.
package datatypes
