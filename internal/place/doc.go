// Package place accesses registered memory that the application reads and writes
// concurrently, as an adapter does: [Copy] stores a peer's write so that its last
// word can be polled, [CompareSwap] and [FetchAdd] are atomic with respect to
// sync/atomic, and [Load] reads such memory.
//
// The application may have unmapped or protected the memory, or truncated the
// file behind it. On a page fault the functions report false instead of ending
// the process.
package place
