// Package place has the three ways in which an adapter, or what takes the place of
// one, changes memory that others look at meanwhile: [Copy] stores what a peer
// writes so that its last word can be polled, [CompareSwap] and [FetchAdd] are
// atomic with respect to sync/atomic. [Load] reads such memory.
//
// The memory is the application's, which may have unmapped it, protected it, or
// cut off the file behind it. All functions then report false instead of ending
// the process.
package place
