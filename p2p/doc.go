// Package p2p knows how devices are linked and how data gets from one to
// another. Links are found through NVML and proven with data: a link that
// loses or changes what is sent over it is not used, and is named. A Route
// moves one block along one path.
package p2p
