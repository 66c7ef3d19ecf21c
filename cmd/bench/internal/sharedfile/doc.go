// Package sharedfile makes memory that the processes of a benchmark share: a file, in memory if
// possible, that each of them maps. It works on Linux.
package sharedfile
