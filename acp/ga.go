package acp

import "github.com/softrnic/softrnic/acp/internal/protocol"

// GA is a global address of a byte of registered memory of any rank (acp_ga_t). It has the same meaning at
// every rank, so every rank may use, store and send it. From the top it contains the rank in 20 bits, the
// region in 12 and the offset in the region in 32.
type GA uint64

// Null is the null address (ACP_GA_NULL).
const Null = GA(protocol.Null)

// Rank returns the rank that owns the memory (acp_query_rank).
func (g GA) Rank() int { return protocol.GA(g).Rank() }

// Add returns the address n bytes after g, or before it if n is negative. It returns Null if the result is
// not an address.
func (g GA) Add(n int) GA { return GA(protocol.GA(g).Add(n)) }

// String returns the parts, for example "rank 3, region 2 + 0x40".
func (g GA) String() string { return protocol.GA(g).String() }
