package protocol

import "fmt"

// GA is a global address: a byte of the registered memory of any rank, as a value
// that every rank can use, store and send (acp_ga_t). From the top: rank, region
// of that rank, offset in the region.
type GA uint64

// What the parts of an address have room for. Region 0 does not exist, so no
// address is Null.
const (
	RankBits   = 20
	RegionBits = 12
	OffsetBits = 32

	MaxRanks   = 1 << RankBits
	MaxRegions = 1 << RegionBits // numbers; one of them is 0
	MaxLength  = 1 << OffsetBits // bytes of a region
)

// Null is no address (ACP_GA_NULL).
const Null GA = 0

// Make returns the address of a byte. The parts have to be within their bounds.
func Make(rank, region int, offset uint64) GA {
	return GA(rank)<<(RegionBits+OffsetBits) | GA(region)<<OffsetBits | GA(offset)
}

// Rank is whose memory it is (acp_query_rank).
func (g GA) Rank() int { return int(g >> (RegionBits + OffsetBits)) }

// Region is the number of the region at its rank.
func (g GA) Region() int { return int(g >> OffsetBits & (MaxRegions - 1)) }

// Offset is the place in the region, in bytes.
func (g GA) Offset() uint64 { return uint64(g & (MaxLength - 1)) }

// Add returns the address n bytes further on, or back if n is negative. Where no
// region can reach it is Null.
func (g GA) Add(n int) GA {
	at := int64(g.Offset()) + int64(n)
	if g == Null || at < 0 || at >= MaxLength {
		return Null
	}
	return g&^(MaxLength-1) | GA(at)
}

// String names the parts: "rank 3, region 2 + 0x40".
func (g GA) String() string {
	if g == Null {
		return "the null address"
	}
	return fmt.Sprintf("rank %d, region %d + 0x%x", g.Rank(), g.Region(), g.Offset())
}
