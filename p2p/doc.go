// Package p2p describes the links between devices and moves data over them. It finds links through NVML and probes
// them with data: a link that loses or corrupts data is not used, and is named. A Route moves one block along one
// path.
package p2p
