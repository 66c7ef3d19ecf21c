package protocol

import "fmt"

// GA is a global address of a byte of registered memory of any rank. Every rank can use, store and send it
// (acp_ga_t). From the top it contains the rank, the region number and the offset in the region.
type GA uint64

// The bounds of the parts of an address. Region 0 does not exist, so no valid address is Null.
const (
	RankBits   = 20
	RegionBits = 12
	OffsetBits = 32

	MaxRanks   = 1 << RankBits
	MaxRegions = 1 << RegionBits // region numbers, including 0
	MaxLength  = 1 << OffsetBits // bytes of a region
)

// Null is the null address (ACP_GA_NULL).
const Null GA = 0

// Make returns the address of a byte. The parts must be within their bounds.
func Make(rank, region int, offset uint64) GA {
	return GA(rank)<<(RegionBits+OffsetBits) | GA(region)<<OffsetBits | GA(offset)
}

// Rank returns the rank that owns the memory (acp_query_rank).
func (g GA) Rank() int { return int(g >> (RegionBits + OffsetBits)) }

// Region returns the region number at its rank.
func (g GA) Region() int { return int(g >> OffsetBits & (MaxRegions - 1)) }

// Offset returns the offset in the region in bytes.
func (g GA) Offset() uint64 { return uint64(g & (MaxLength - 1)) }

// Add returns the address n bytes after g, or before it if n is negative. It returns Null if the result is
// not a valid offset.
func (g GA) Add(n int) GA {
	at := int64(g.Offset()) + int64(n)
	if g == Null || at < 0 || at >= MaxLength {
		return Null
	}
	return g&^(MaxLength-1) | GA(at)
}

// String returns the parts, for example "rank 3, region 2 + 0x40".
func (g GA) String() string {
	if g == Null {
		return "the null address"
	}
	return fmt.Sprintf("rank %d, region %d + 0x%x", g.Rank(), g.Region(), g.Offset())
}
