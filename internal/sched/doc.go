// Package sched controls the operating system's scheduling of threads, for
// goroutines that spin instead of sleeping.
package sched
