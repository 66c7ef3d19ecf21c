package coll

// algorithms are the algorithms by collective.
var algorithms = [numCollectives][]Algorithm{
	Barrier: {
		{Name: "dissemination", Source: hensgen, run: func(c *Call, _ *args) error { return barrierDissemination(c) }},
		{Name: "tree", run: func(c *Call, _ *args) error { return barrierTree(c) }},
		{Name: "recursive-doubling", Source: brooks, run: func(c *Call, _ *args) error { return barrierDoubling(c) }},
		{Name: "linear", run: func(c *Call, _ *args) error { return barrierLinear(c) }},
		{Name: "shared", Needs: Needs{SharedBytes: needNothing}, run: func(c *Call, _ *args) error { return barrierShared(c) }},
	},
	Bcast: {
		{Name: "binomial", Source: thakur, run: func(c *Call, a *args) error { return bcastBinomial(c, a.root, a.recv.mem) }},
		{Name: "scatter-ring", Source: thakur, run: func(c *Call, a *args) error {
			return bcastScatter(c, a.root, a.recv.mem, allgatherRing)
		}},
		{Name: "scatter-doubling", Source: thakur, run: func(c *Call, a *args) error {
			return bcastScatter(c, a.root, a.recv.mem, allgatherDoubling)
		}},
		{Name: "linear", run: func(c *Call, a *args) error { return bcastLinear(c, a.root, a.recv.mem) }},
		{Name: "chain", Source: worringen, run: func(c *Call, a *args) error { return bcastChain(c, a.root, a.recv.mem) }},
		{Name: "shared", Needs: Needs{SharedBytes: needVector}, run: func(c *Call, a *args) error { return bcastShared(c, a.root, a.recv.mem) }},
	},
	Gather: {
		{Name: "linear", run: func(c *Call, a *args) error { return gatherLinear(c, a.root, a.send.mem, a.recv) }},
		{Name: "binomial", Source: thakur, run: func(c *Call, a *args) error { return gatherBinomial(c, a.root, a.send.mem, a.recv) }},
		{Name: "shared", Needs: Needs{SharedBytes: needVector}, run: func(c *Call, a *args) error { return gatherShared(c, a.root, a.send.mem, a.recv) }},
	},
	Gatherv: {
		{Name: "linear", run: func(c *Call, a *args) error { return gatherLinear(c, a.root, a.send.mem, a.recv) }},
		{Name: "binomial", Source: traff, run: func(c *Call, a *args) error { return gathervBinomial(c, a.root, a.send.mem, a.recv) }},
	},
	Scatter: {
		{Name: "linear", run: func(c *Call, a *args) error { return scatterLinear(c, a.root, a.send, a.recv.mem) }},
		{Name: "binomial", Source: thakur, run: func(c *Call, a *args) error { return scatterBinomial(c, a.root, a.send, a.recv.mem) }},
		{Name: "shared", Needs: Needs{SharedBytes: needVectorPerRank}, run: func(c *Call, a *args) error { return scatterShared(c, a.root, a.send, a.recv.mem) }},
	},
	Scatterv: {
		{Name: "linear", run: func(c *Call, a *args) error { return scatterLinear(c, a.root, a.send, a.recv.mem) }},
		{Name: "binomial", Source: traff, run: func(c *Call, a *args) error { return scattervBinomial(c, a.root, a.send, a.recv.mem) }},
	},
	Allgather:  allgatherAlgorithms,
	Allgatherv: allgatherAlgorithms,
	Alltoall: {
		{Name: "pairwise", Source: thakur, run: outOfPlace(alltoallPairwise)},
		{Name: "bruck", Source: bruck, run: func(c *Call, a *args) error { return alltoallBruck(c, a.send, a.recv) }},
		{Name: "direct", Source: sur, run: outOfPlace(alltoallDirect)},
		{Name: "rdma", Source: mamidala + ", section 4.1", Needs: Needs{Network: canWrite}, run: outOfPlace(alltoallRDMA)},
		{Name: "rtsrtr", Source: mamidala + ", section 2", Needs: Needs{Network: canQueue}, run: outOfPlace(alltoallRTSRTR)},
		{Name: "ud", Source: mamidala + ", section 4.3", Needs: Needs{Network: onlyDatagrams}, run: outOfPlace(alltoallDirect)},
		{Name: "hybrid", Source: mamidala + ", section 4.3", Needs: Needs{Network: knownTransport}, run: outOfPlace(alltoallHybrid)},
		{Name: "linear", run: outOfPlace(alltoallLinear)},
		{Name: "gather-scatter", run: func(c *Call, a *args) error { return alltoallCentral(c, a.send, a.recv) }},
		{Name: "shared", Needs: Needs{SharedBytes: needVectorPerRank}, run: func(c *Call, a *args) error { return alltoallShared(c, a.send, a.recv) }},
	},
	Alltoallv: alltoallAlgorithms,
	Alltoallw: alltoallAlgorithms,
	Reduce: {
		{Name: "binomial", Source: thakur, run: func(c *Call, a *args) error {
			return reduceBinomial(c, a.root, a.send.mem, a.recv.mem, &a.op)
		}},
		{Name: "rabenseifner", Source: rabenseifner, run: func(c *Call, a *args) error {
			return reduceRabenseifner(c, a.root, a.send.mem, a.recv.mem, &a.op)
		}},
		{Name: "linear", run: func(c *Call, a *args) error {
			return reduceLinear(c, a.root, a.send.mem, a.recv.mem, &a.op)
		}},
		{Name: "shared", Needs: Needs{SharedBytes: needVector, Predefined: true}, run: func(c *Call, a *args) error {
			return reduceShared(c, a.root, a.send.mem, a.recv.mem, &a.op)
		}},
	},
	Allreduce: {
		{Name: "recursive-doubling", Source: thakur, run: func(c *Call, a *args) error { return allreduceDoubling(c, a.recv.mem, &a.op) }},
		{Name: "rabenseifner", Source: rabenseifner, run: func(c *Call, a *args) error { return allreduceRabenseifner(c, a.recv.mem, &a.op) }},
		{Name: "ring", Source: patarasuk, Needs: Needs{Commutative: true}, run: func(c *Call, a *args) error {
			return allreduceRing(c, a.recv.mem, &a.op)
		}},
		{Name: "reduce-bcast", run: func(c *Call, a *args) error { return allreduceReduceBcast(c, a.recv.mem, &a.op) }},
		{Name: "linear", run: func(c *Call, a *args) error { return allreduceLinear(c, a.recv.mem, &a.op) }},
		{Name: "shared", Needs: Needs{SharedBytes: needVector, Predefined: true}, run: func(c *Call, a *args) error { return allreduceShared(c, a.recv.mem, &a.op) }},
		{Name: "shared-parts", Source: rabenseifner, Needs: Needs{SharedBytes: needElement, Predefined: true}, run: func(c *Call, a *args) error {
			return allreduceSharedParts(c, a.recv.mem, &a.op)
		}},
	},
	ReduceScatter:      reduceScatterAlgorithms,
	ReduceScatterBlock: reduceScatterAlgorithms,
	Scan: {
		{Name: "linear", run: func(c *Call, a *args) error { return scanLinear(c, a.recv.mem, &a.op) }},
		{Name: "recursive-doubling", Source: hillis, run: func(c *Call, a *args) error { return scanDoubling(c, a.recv.mem, &a.op) }},
		{Name: "shared", Needs: Needs{SharedBytes: needVector, Predefined: true}, run: func(c *Call, a *args) error { return scanShared(c, a.recv.mem, &a.op) }},
	},
	Exscan: {
		{Name: "linear", run: func(c *Call, a *args) error { return exscanLinear(c, a.send.mem, a.recv.mem, &a.op) }},
		{Name: "recursive-doubling", Source: hillis, run: func(c *Call, a *args) error {
			return exscanDoubling(c, a.send.mem, a.recv.mem, &a.op)
		}},
		{Name: "shared", Needs: Needs{SharedBytes: needVector, Predefined: true}, run: func(c *Call, a *args) error {
			return exscanShared(c, a.send.mem, a.recv.mem, &a.op)
		}},
	},
}

var allgatherAlgorithms = []Algorithm{
	{Name: "ring", Source: thakur, run: func(c *Call, a *args) error { return allgatherRing(c, 0, a.recv) }},
	{Name: "recursive-doubling", Source: thakur, run: func(c *Call, a *args) error {
		return c.runDense(a.recv, func(c *Call, b blocks) error { return allgatherDoubling(c, 0, b) })
	}},
	{Name: "bruck", Source: bruck, run: func(c *Call, a *args) error { return c.runDense(a.recv, allgatherBruck) }},
	{Name: "neighbour", Source: chen, Needs: Needs{Even: true}, run: func(c *Call, a *args) error {
		return c.runDense(a.recv, allgatherNeighbour)
	}},
	{Name: "gather-bcast", run: func(c *Call, a *args) error { return c.runDense(a.recv, allgatherGatherBcast) }},
	{Name: "linear", run: func(c *Call, a *args) error { return c.runDense(a.recv, allgatherLinear) }},
	{Name: "shared", Needs: Needs{SharedBytes: needVector}, run: func(c *Call, a *args) error { return allgatherShared(c, a.recv) }},
}

var alltoallAlgorithms = []Algorithm{
	{Name: "pairwise", Source: thakur, run: outOfPlace(alltoallPairwise)},
	{Name: "direct", Source: sur, run: outOfPlace(alltoallDirect)},
	{Name: "linear", run: outOfPlace(alltoallLinear)},
}

// outOfPlace wraps an alltoall algorithm that sends from the user's buffer. Calls in
// place use alltoallInPlace instead.
func outOfPlace(run func(c *Call, send, recv blocks) error) func(c *Call, a *args) error {
	return func(c *Call, a *args) error {
		if a.inPlace {
			return alltoallInPlace(c, a.recv)
		}
		return run(c, a.send, a.recv)
	}
}

var reduceScatterAlgorithms = []Algorithm{
	{Name: "pairwise", Source: thakur, run: func(c *Call, a *args) error {
		return reduceScatterPairwise(c, a.send, a.recv.mem, &a.op)
	}},
	{Name: "recursive-halving", Source: thakur, Needs: Needs{Commutative: true}, run: func(c *Call, a *args) error {
		return reduceScatterHalving(c, a.send, a.recv.mem, &a.op)
	}},
	{Name: "reduce-scatter", run: func(c *Call, a *args) error {
		return reduceScatterReduce(c, a.send, a.recv.mem, &a.op)
	}},
	{Name: "linear", run: func(c *Call, a *args) error {
		return reduceScatterLinear(c, a.send, a.recv.mem, &a.op)
	}},
	{Name: "shared", Needs: Needs{SharedBytes: needVector, Predefined: true}, run: func(c *Call, a *args) error {
		return reduceScatterShared(c, a.send, a.recv.mem, &a.op)
	}},
}

// The sources. Algorithms without one follow the definition of the collective.
const (
	brooks       = "Brooks 1986, The butterfly barrier"
	bruck        = "Bruck, Ho, Kipnis, Upfal, Weathersby 1997, Efficient algorithms for all-to-all communications in multiport message-passing systems"
	chen         = "Chen, Zhang, Zhang, Yuan 2005, Performance evaluation of allgather algorithms on terascale Linux cluster with Fast Ethernet"
	hensgen      = "Hensgen, Finkel, Manber 1988, Two algorithms for barrier synchronization"
	hillis       = "Hillis, Steele 1986, Data parallel algorithms"
	mamidala     = "Mamidala, Narravula, Vishnu, Santhanaraman, Panda 2007, On using connection-oriented vs. connection-less transport for performance and scalability of collective and one-sided operations"
	patarasuk    = "Patarasuk, Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations"
	rabenseifner = "Rabenseifner 2004, Optimization of collective reduction operations"
	sur          = "Sur, Jin, Panda 2004, Efficient and scalable all-to-all exchange for InfiniBand-based clusters"
	thakur       = "Thakur, Rabenseifner, Gropp 2005, Optimization of collective communication operations in MPICH"
	traff        = "Traff 2004, Hierarchical gather/scatter algorithms with graceful degradation"
	worringen    = "Worringen 2003, Pipelining and overlapping for MPI collective operations"
)
