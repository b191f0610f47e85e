// Package nap sleeps for less than a millisecond.
package nap
