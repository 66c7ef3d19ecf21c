package mpi

import "github.com/softrnic/softrnic/mpi/internal/coll"

// Constructors of collective calls, for all forms: blocking, nonblocking and persistent.

func barrierOp() collectiveOp {
	return collectiveOp{collective: coll.Barrier}
}

func bcastOp(b Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Bcast, recv: b.data, root: root}
}

func gatherOp(send, recv Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Gather, send: send.data, recv: recv.data, root: root}
}

func gathervOp(send, recv Buffer, counts, displs []int, root int) collectiveOp {
	return collectiveOp{collective: coll.Gatherv, send: send.data, recv: recv.data, recvLayout: blockLayout{counts, displs}, root: root}
}

func scatterOp(send, recv Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Scatter, send: send.data, recv: recv.data, root: root}
}

func scattervOp(send Buffer, counts, displs []int, recv Buffer, root int) collectiveOp {
	return collectiveOp{collective: coll.Scatterv, send: send.data, sendLayout: blockLayout{counts, displs}, recv: recv.data, root: root}
}

func allgatherOp(send, recv Buffer) collectiveOp {
	return collectiveOp{collective: coll.Allgather, send: send.data, recv: recv.data}
}

func allgathervOp(send, recv Buffer, counts, displs []int) collectiveOp {
	return collectiveOp{collective: coll.Allgatherv, send: send.data, recv: recv.data, recvLayout: blockLayout{counts, displs}}
}

func alltoallOp(send, recv Buffer) collectiveOp {
	return collectiveOp{collective: coll.Alltoall, send: send.data, recv: recv.data}
}

func alltoallvOp(send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int) collectiveOp {
	return collectiveOp{collective: coll.Alltoallv, send: send.data, sendLayout: blockLayout{sendCounts, sendDispls}, recv: recv.data, recvLayout: blockLayout{recvCounts, recvDispls}}
}

func alltoallwOp(send, recv []Buffer) collectiveOp {
	return collectiveOp{collective: coll.Alltoallw, sends: send, recvs: recv}
}

func reduceCollective(send, recv Buffer, op Op, root int) collectiveOp {
	return collectiveOp{collective: coll.Reduce, send: send.data, recv: recv.data, reduceOp: op.op, root: root}
}

func allreduceOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.Allreduce, send: send.data, recv: recv.data, reduceOp: op.op}
}

func reduceScatterOp(send, recv Buffer, counts []int, op Op) collectiveOp {
	return collectiveOp{collective: coll.ReduceScatter, send: send.data, sendLayout: blockLayout{counts: counts}, recv: recv.data, reduceOp: op.op}
}

func reduceScatterBlockOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.ReduceScatterBlock, send: send.data, recv: recv.data, reduceOp: op.op}
}

func scanOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.Scan, send: send.data, recv: recv.data, reduceOp: op.op}
}

func exscanOp(send, recv Buffer, op Op) collectiveOp {
	return collectiveOp{collective: coll.Exscan, send: send.data, recv: recv.data, reduceOp: op.op}
}
