package mpi

import "github.com/softrnic/softrnic/mpi/internal/coll"

// The calls, in whatever form they are made: blocking, in the background, or kept
// to be made again and again.

func barrier() operation {
	return operation{what: coll.Barrier}
}

func bcast(b Buffer, root int) operation {
	return operation{what: coll.Bcast, recv: b, root: root}
}

func gather(send, recv Buffer, root int) operation {
	return operation{what: coll.Gather, send: send, recv: recv, root: root}
}

func gatherv(send, recv Buffer, counts, displs []int, root int) operation {
	return operation{what: coll.Gatherv, send: send, recv: recv, recvParts: parts{counts, displs}, root: root}
}

func scatter(send, recv Buffer, root int) operation {
	return operation{what: coll.Scatter, send: send, recv: recv, root: root}
}

func scatterv(send Buffer, counts, displs []int, recv Buffer, root int) operation {
	return operation{what: coll.Scatterv, send: send, sendParts: parts{counts, displs}, recv: recv, root: root}
}

func allgather(send, recv Buffer) operation {
	return operation{what: coll.Allgather, send: send, recv: recv}
}

func allgatherv(send, recv Buffer, counts, displs []int) operation {
	return operation{what: coll.Allgatherv, send: send, recv: recv, recvParts: parts{counts, displs}}
}

func alltoall(send, recv Buffer) operation {
	return operation{what: coll.Alltoall, send: send, recv: recv}
}

func alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) operation {
	return operation{what: coll.Alltoallv, send: send, sendParts: parts{sendCounts, sendDispls}, recv: recv, recvParts: parts{recvCounts, recvDispls}}
}

func alltoallw(send, recv []Buffer) operation {
	return operation{what: coll.Alltoallw, sends: send, recvs: recv}
}

func reduce(send, recv Buffer, op Op, root int) operation {
	return operation{what: coll.Reduce, send: send, recv: recv, op: op, root: root}
}

func allreduce(send, recv Buffer, op Op) operation {
	return operation{what: coll.Allreduce, send: send, recv: recv, op: op}
}

func reduceScatter(send, recv Buffer, counts []int, op Op) operation {
	return operation{what: coll.ReduceScatter, send: send, sendParts: parts{counts: counts}, recv: recv, op: op}
}

func reduceScatterBlock(send, recv Buffer, op Op) operation {
	return operation{what: coll.ReduceScatterBlock, send: send, recv: recv, op: op}
}

func scan(send, recv Buffer, op Op) operation {
	return operation{what: coll.Scan, send: send, recv: recv, op: op}
}

func exscan(send, recv Buffer, op Op) operation {
	return operation{what: coll.Exscan, send: send, recv: recv, op: op}
}
