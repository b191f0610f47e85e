// Package domain cuts structured grids into subdomains and says, for every
// subdomain, which points it owns, which points it needs of others, and where
// all of them lie in memory. It works on integers only and knows no device.
//
// Axes are numbered x = 0, y = 1, z = 2. Boxes are half open and, unless a
// comment says otherwise, in the global indices of the grid. Nothing outside
// this package works out an offset of a face.
package domain
