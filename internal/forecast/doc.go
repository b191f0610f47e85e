// Package forecast says how long a step takes on machines that are not there: hosts with some devices each, joined by a
// network. A model with few parameters is fitted to steps that were measured, and says how far it is from those.
package forecast
