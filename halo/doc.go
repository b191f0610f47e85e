// Package halo exchanges the ghost regions of fields that are cut over several
// devices. It knows no stencil: a ghost width is all it needs.
//
// A Placement gives every subdomain a device. A Field is an array over the
// whole grid, a block of memory a subdomain. A Plan lists the messages of one
// exchange, with their boxes and paths; an Exchanger holds the buffers and
// launches that carry them out, and gives them out as Transfers, one a message,
// for the caller to order over its streams and threads.
package halo
