// Package onesided implements the one-sided communication of a rank: windows, their epochs and
// locks, and operations on the memory of other ranks (MPI 4.1, chapter 12).
package onesided
