// Package thread gives the processor away, for those who look for something again
// and again instead of sleeping until it is there.
package sched
