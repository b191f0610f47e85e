// Package field writes and reads fields as NumPy files (.npy).
package field
