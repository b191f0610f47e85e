// Package halo exchanges the ghost regions of fields that are decomposed over several devices. It is
// independent of stencils: it only needs the width of the ghosts.
//
// A Placement assigns a device to every subdomain; Open and Session.Cut make one. A Spec describes a field:
// its elements and components (or values of any datatype), its ghosts, and its staggering. A Field is
// allocated memory, or memory of the caller wrapped by WrapField. A Plan lists the messages that exchange
// several fields together, with their boxes, their paths and the reason for each path. An Exchanger holds the
// buffers and launches that execute a plan.
//
// One thread drives an exchange of all devices with Start and Wait, or Exchange. Several threads drive its
// Transfers, one per message, or ExchangeRank, one per GPU.
//
// In addition: Fill, Read and Write move data between host memory and a field. Reduction computes sums and
// norms over the owned points. Accumulator adds ghosts to their owners. WideHalo runs several steps between
// two exchanges. MapDevices assigns subdomains to devices, and LinkModel chooses the fastest paths. Package
// boundary sets the ghosts outside physical boundaries; package halotest checks an exchange against geometry.
package halo
