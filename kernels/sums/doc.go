// Package sums adds float64 so that the bits of a sum depend on the terms alone: not on their order, nor
// on who adds which of them before the parts are joined. It is the host version of sums.cuh.
//
// Binary digits are cut at fixed places into bins of 40: bin n holds multiples of 2^(40n-1074). A sum has
// three bins, from that of its window on. The window is the lowest one whose bins hold the largest term,
// which is below 2^(40(window+3)-1074); what of a term lies below these bins is cut off. So the largest term
// alone says where terms are cut, the bins sum integers, which is exact, and the sum is rounded once, to the
// nearest float64. See Demmel and Nguyen, Parallel Reproducible Summation (2015), whose bins these are.
//
// With n terms, the largest of magnitude m, the sum is within n m 2^-80 of the exact one before it is
// rounded.
package sums
