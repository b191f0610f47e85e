// Package wording writes numbers and words as people read them: in tables, summaries and at the axes of plots.
package wording
