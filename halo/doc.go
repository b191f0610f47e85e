// Package halo exchanges the ghost regions of fields that are cut over several devices. It knows no stencil: a ghost
// width is all it needs.
//
// A Placement gives every subdomain a device; Open and Session.Cut make one from nothing. A Spec describes a field: its
// elements and components, or values of any layout, its ghosts, where it lies between the points. A Field is one in
// memory, or in the caller's memory with WrapField. A Plan lists the messages of an exchange of some fields together,
// with their boxes, their paths and why; an Exchanger holds the buffers and launches that carry them out.
//
// One thread drives an exchange of all devices with Start and Wait, or Exchange. Several threads drive its Transfers,
// one per message, or ExchangeRank, one per GPU.
//
// Around the exchange: Fill, Read and Write between host memory and a field, Reduction over its owned points,
// Accumulator for an exchange that sums ghosts into their owners, WideHalo for several steps between two exchanges,
// MapDevices for which subdomain goes to which device, LinkModel for which path is fastest. Package boundary keeps the
// ghosts that no message brings; package halotest checks an exchange against geometry.
package halo
