// Package links measures the links between devices: messages of all sizes over every path, by
// [Options], and the smallest pieces of work, by [LatencyOptions].
package links
