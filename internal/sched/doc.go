// Package sched controls the operating system's scheduling of threads, for
// goroutines that spin instead of sleeping, and decides how long they spin
// (Spinner, Spin).
package sched
