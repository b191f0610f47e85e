// Package reduce makes few numbers of the many of a field: a NormReducer the norms that a convergence
// check asks about, of a field and the one before it, and a Reducer sums, smallest and largest values
// of any numbers.
package reduce
