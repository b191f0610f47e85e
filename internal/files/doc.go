// Package files writes files whole or not at all, and reads only regular ones of a size
// that was foreseen.
package files
