// Package resultstest has what tests of package results and of the rooms below it share: golden files, sample records and a sample trace.
package resultstest
