// Posting work requests: ibv_post_send(3), ibv_post_recv(3), ibv_post_srq_recv(3).
#include "engine.h"
#include "_cgo_export.h"

// MAX_TOUCHED bounds the elements that are read before their number is checked.
enum { MAX_TOUCHED = 32 };

// touch_list reads the ends of a scatter/gather list. A program whose list is at a wild address ends here with
// SIGSEGV, as in a driver, or runs its own handler. In Go code the runtime would end it with its own report.
static inline void touch_list(const struct ibv_sge *sges, int count)
{
	if (!sges || count <= 0 || count > MAX_TOUCHED)
		return; // none, or refused for its length
	(void)*(const volatile uint32_t *)&sges[0].lkey;
	(void)*(const volatile uint32_t *)&sges[count - 1].lkey;
}

// touch_data reads the ends of inline data, as touch_list does.
static inline void touch_data(const struct ibv_sge *sges, int count)
{
	for (int i = 0; sges && i < count && count <= MAX_TOUCHED; i++) {
		const volatile char *data = (const volatile char *)(uintptr_t)sges[i].addr;
		if (sges[i].length)
			(void)data[0];
		if (sges[i].length > 1 && sges[i].length <= 4096) // more is refused before it is read
			(void)data[sges[i].length - 1];
	}
}

// convert copies a work request without its union.
static void convert(struct send_request *r, const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	*r = (struct send_request){
		.wr_id = wr->wr_id, .sges = wr->sg_list, .nsge = wr->num_sge, .opcode = wr->opcode, .flags = wr->send_flags,
	};
	touch_list(wr->sg_list, wr->num_sge);
	if (wr->send_flags & IBV_SEND_INLINE)
		touch_data(wr->sg_list, wr->num_sge);
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_SEND_WITH_IMM:
		r->imm = be32toh(wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		r->inv_rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		r->mw = wr->bind_mw.mw ? wr->bind_mw.mw->handle : 0;
		r->bind_rkey = wr->bind_mw.rkey;
		r->mr = wr->bind_mw.bind_info.mr ? wr->bind_mw.bind_info.mr->handle : 0;
		r->bind_addr = wr->bind_mw.bind_info.addr;
		r->bind_length = wr->bind_mw.bind_info.length;
		r->bind_access = wr->bind_mw.bind_info.mw_access_flags;
		break;
	default:
		break;
	}
	if (qp->qp_type == IBV_QPT_UD) {
		r->ah = wr->wr.ud.ah ? wr->wr.ud.ah->handle : 0;
		r->remote_qpn = wr->wr.ud.remote_qpn;
		r->remote_qkey = wr->wr.ud.remote_qkey;
	} else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		r->remote_addr = wr->wr.atomic.remote_addr;
		r->rkey = wr->wr.atomic.rkey;
		r->compare_add = wr->wr.atomic.compare_add;
		r->swap = wr->wr.atomic.swap;
	} else {
		r->remote_addr = wr->wr.rdma.remote_addr;
		r->rkey = wr->wr.rdma.rkey;
	}
}

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct send_request batch[BATCH];
	while (wr) {
		struct ibv_send_wr *first = wr;
		int n = 0, done = 0;
		for (; wr && n < BATCH; wr = wr->next)
			convert(&batch[n++], qp, wr);
		int error = softrnic_forked ? EIO : go_post_send(qp->handle, batch, n, &done);
		if (error && !ends_elsewhere()) {
			for (; done > 0; done--)
				first = first->next;
			*bad = first;
			return fail(error);
		}
	}
	return 0;
}

static int post_receives(int (*post)(uint32_t, struct recv_request *, int, int *), uint32_t handle, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad)
{
	struct recv_request batch[BATCH];
	while (wr) {
		struct ibv_recv_wr *first = wr;
		int n = 0, done = 0;
		for (; wr && n < BATCH; wr = wr->next) {
			touch_list(wr->sg_list, wr->num_sge);
			batch[n++] = (struct recv_request){wr->wr_id, wr->sg_list, wr->num_sge};
		}
		int error = softrnic_forked ? EIO : post(handle, batch, n, &done);
		if (error && !ends_elsewhere()) {
			for (; done > 0; done--)
				first = first->next;
			*bad = first;
			return fail(error);
		}
	}
	return 0;
}

int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_receives(go_post_recv, qp->handle, wr, bad);
}

int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_receives(go_post_srq_recv, srq->handle, wr, bad);
}
