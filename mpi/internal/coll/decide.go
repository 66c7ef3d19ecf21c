package coll

// A decisionRule selects an algorithm for calls of limited size. 0 is no limit.
type decisionRule struct {
	ranks, bytes int
	totalBytes   int  // limit of bytes times ranks
	power        bool // only if the number of ranks is a power of two
	crowded      bool // only if Case.isCrowded
	name         string
}

// matchesCase reports whether the rule applies to a call.
func (r *decisionRule) matchesCase(c Case, crowded bool) bool {
	return (r.ranks == 0 || c.Ranks <= r.ranks) && (r.bytes == 0 || c.Bytes <= r.bytes) && (r.totalBytes == 0 || c.Bytes <= r.totalBytes/c.Ranks) &&
		(!r.power || c.Ranks&(c.Ranks-1) == 0) && (!r.crowded || crowded)
}

// decisions selects the algorithm of a call: the first rule that matches it and whose
// algorithm can do it. The limits are the defaults of MPICH (Thakur, Rabenseifner and
// Gropp 2005), except for those of the direct alltoall and of crowded machines, which
// were measured: docs/collectives.md. Case.Bytes defines the size.
var decisions = [numCollectives][]decisionRule{
	Barrier: {
		{name: "shared"},
		{crowded: true, name: "linear"},
		{name: "dissemination"},
	},
	Bcast: {
		{name: "shared"},
		{bytes: 12 << 10, name: "binomial"},
		{ranks: 7, name: "binomial"},
		{bytes: 512 << 10, power: true, name: "scatter-doubling"},
		{name: "scatter-ring"},
	},
	Gather: {
		{name: "shared"},
		{bytes: 2 << 10, name: "binomial"},
		{name: "linear"},
	},
	Gatherv: {{name: "linear"}},
	Scatter: {
		{name: "shared"},
		{bytes: 2 << 10, name: "binomial"},
		{name: "linear"},
	},
	Scatterv:   {{name: "linear"}},
	Allgather:  decideAllgather,
	Allgatherv: decideAllgather,
	Alltoall: {
		{name: "shared"},
		{ranks: 7, bytes: 64 << 10, name: "direct"},
		{crowded: true, totalBytes: 8 << 10, name: "gather-scatter"},
		{crowded: true, bytes: 1 << 10, name: "bruck"},
		{bytes: 256, name: "bruck"},
		{bytes: 64 << 10, name: "direct"},
		{name: "pairwise"},
	},
	Alltoallv: {{name: "direct"}},
	Alltoallw: {{name: "direct"}},
	Reduce: {
		{totalBytes: 256 << 10, name: "shared"},
		{bytes: 2 << 10, name: "binomial"},
		{name: "rabenseifner"},
	},
	Allreduce: {
		{bytes: 2 << 10, name: "shared"},
		{totalBytes: 32 << 10, name: "shared"},
		{name: "shared-parts"},
		{crowded: true, bytes: 32 << 10, name: "linear"},
		{bytes: 2 << 10, name: "recursive-doubling"},
		{name: "rabenseifner"},
	},
	ReduceScatter:      decideReduceScatter,
	ReduceScatterBlock: decideReduceScatter,
	Scan:               decideScan,
	Exscan:             decideScan,
}

var decideScan = []decisionRule{
	{name: "shared"},
	{name: "recursive-doubling"},
}

var decideAllgather = []decisionRule{
	{name: "shared"},
	{crowded: true, bytes: 128 << 10, name: "linear"},
	{bytes: 512 << 10, power: true, name: "recursive-doubling"},
	{bytes: 80 << 10, name: "bruck"},
	{name: "ring"},
}

var decideReduceScatter = []decisionRule{
	{name: "shared"},
	{crowded: true, bytes: 8 << 10, name: "linear"},
	{bytes: 512 << 10, name: "recursive-halving"},
	{name: "pairwise"},
}

// decideAlgorithm returns the default algorithm of a call.
func decideAlgorithm(collective Collective, c Case) *Algorithm {
	crowded := c.isCrowded()
	for _, r := range decisions[collective] {
		if !r.matchesCase(c, crowded) {
			continue
		}
		if a, err := findAlgorithm(collective, r.name); err == nil && a.supports(c) {
			return a
		}
	}
	return &algorithms[collective][0]
}

const (
	defaultWindow  = 32       // messages in flight in each direction of alltoallDirect
	defaultSegment = 64 << 10 // bytes of a segment of bcastChain
)
