// Package boundary keeps the ghosts behind the physical faces of a grid right: what lies
// beyond the first and the last point of an axis that is not periodic.
//
// In edges and corners periodic axes and neighbours are followed first, then Neumann and
// repeating faces; of several Dirichlet faces that of the last axis counts. Of a component with
// ghosts of its own, see halo.Spec.Widths, they are set as far as an exchange brings those that
// they are made from; what lies beyond is undefined.
package boundary
