// Queue pairs and shared receive queues: ibv_create_qp(3), ibv_create_qp_ex(3),
// ibv_modify_qp(3), ibv_query_qp(3), ibv_create_srq(3), ibv_attach_mcast(3).
#include "engine.h"
#include "_cgo_export.h"

#include <stdlib.h>
#include <string.h>

static struct queue_pair *create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (softrnic_forked)
		return fail_null(EIO);
	if (!attr->send_cq || !attr->recv_cq)
		return fail_null(EINVAL);
	struct queue_pair *q = calloc(1, sizeof *q + PRIVATE_ROOM);
	if (!q)
		return NULL;
	struct ibv_qp *qp = &q->v.qp;
	struct ibv_qp_cap cap = attr->cap;
	qp->context = pd->context;
	struct event_queue *async = &context_of(pd->context)->async;
	int error = event_queue_reserve(async);
	if (error)
		return free(q), fail_null(error);
	error = go_create_qp(pd->handle, attr->qp_type, attr->send_cq->handle, attr->recv_cq->handle,
			     attr->srq ? attr->srq->handle : 0, attr->sq_sig_all, &cap, q, &qp->handle, &qp->qp_num);
	if (error) {
		event_queue_release(async);
		free(q);
		return fail_null(error);
	}
	attr->cap = cap;
	qp->qp_context = attr->qp_context;
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->state = IBV_QPS_RESET;
	qp->qp_type = attr->qp_type;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
	return q;
}

struct ibv_qp *API(ibv_create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return (struct ibv_qp *)create(pd, attr);
}

int API(ibv_destroy_qp)(struct ibv_qp *qp);

struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint64_t known_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
		IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
		IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE | WITH_FLUSH;
	(void)context;
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return fail_null(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
		return fail_null(EINVAL);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		return fail_null(EOPNOTSUPP);
	bool builder = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (builder && attr->send_ops_flags & ~known_ops)
		return fail_null(EOPNOTSUPP);
	if (builder && attr->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE && attr->cap.max_inline_data < 8)
		attr->cap.max_inline_data = 8; // ibv_wr_atomic_write copies its data
	// The first fields of ibv_qp_init_attr_ex are those of ibv_qp_init_attr.
	struct queue_pair *q = create(attr->pd, (struct ibv_qp_init_attr *)attr);
	if (q && builder)
		install_builder(q);
	if (q && builder && !q->extended) {
		softrnic_ibv_destroy_qp(&q->v.qp);
		return fail_null(ENOMEM);
	}
	return (struct ibv_qp *)q;
}

struct ibv_qp_ex *API(ibv_qp_to_qp_ex)(struct ibv_qp *qp)
{
	struct queue_pair *q = (struct queue_pair *)qp;
	return q->extended ? &q->v.ex : NULL;
}

int API(ibv_modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (softrnic_forked)
		return fail(EIO);
	int error = go_modify_qp(qp->handle, attr, mask);
	if (!error && mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return fail(error);
}

int API(ibv_query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	(void)mask;
	memset(attr, 0, sizeof *attr);
	memset(init, 0, sizeof *init);
	if (softrnic_forked)
		return fail(EIO);
	int signal_all = 0;
	int error = go_query_qp(qp->handle, attr, &signal_all);
	if (error)
		return fail(error);
	init->qp_context = qp->qp_context;
	init->send_cq = qp->send_cq;
	init->recv_cq = qp->recv_cq;
	init->srq = qp->srq;
	init->cap = attr->cap;
	init->qp_type = qp->qp_type;
	init->sq_sig_all = signal_all;
	qp->state = attr->qp_state;
	return 0;
}

int API(ibv_destroy_qp)(struct ibv_qp *qp)
{
	struct queue_pair *q = (struct queue_pair *)qp;
	if (!softrnic_forked) {
		int error = go_destroy(qp->handle);
		if (error)
			return fail(error);
		event_queue_forget(&context_of(qp->context)->async, qp, &q->async_raised, &qp->events_completed);
	}
	remove_builder(q);
	retire(q);
	return 0;
}

int API(ibv_attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	if (qp->qp_type != IBV_QPT_UD)
		return fail(EINVAL);
	return softrnic_forked ? fail(EIO) : fail(go_attach_mcast(qp->handle, (void *)gid->raw, 1));
}

int API(ibv_detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return softrnic_forked ? fail(EIO) : fail(go_attach_mcast(qp->handle, (void *)gid->raw, 0));
}

struct ibv_srq *API(ibv_create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (softrnic_forked)
		return fail_null(EIO);
	struct shared_receive_queue *s = calloc(1, sizeof *s + PRIVATE_ROOM);
	if (!s)
		return NULL;
	struct event_queue *async = &context_of(pd->context)->async;
	int error = event_queue_reserve(async);
	if (error)
		return free(s), fail_null(error);
	error = go_create_srq(pd->handle, &attr->attr, s, &s->srq.handle);
	if (error) {
		event_queue_release(async);
		free(s);
		return fail_null(error);
	}
	s->srq.context = pd->context;
	s->srq.srq_context = attr->srq_context;
	s->srq.pd = pd;
	pthread_mutex_init(&s->srq.mutex, NULL);
	pthread_cond_init(&s->srq.cond, NULL);
	return &s->srq;
}

struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	(void)context;
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC)
		return fail_null(EOPNOTSUPP); // XRC, tag matching
	if (attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD))
		return fail_null(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return fail_null(EINVAL);
	return softrnic_ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
}

int get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	(void)srq, (void)number;
	return EOPNOTSUPP; // of XRC only
}

int API(ibv_modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return softrnic_forked ? fail(EIO) : fail(go_modify_srq(srq->handle, attr, mask));
}

int API(ibv_query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return softrnic_forked ? fail(EIO) : fail(go_query_srq(srq->handle, attr));
}

int API(ibv_destroy_srq)(struct ibv_srq *srq)
{
	struct shared_receive_queue *s = (struct shared_receive_queue *)srq;
	if (!softrnic_forked) {
		int error = go_destroy(srq->handle);
		if (error)
			return fail(error);
		event_queue_forget(&context_of(srq->context)->async, srq, &s->async_raised, &srq->events_completed);
	}
	retire(s);
	return 0;
}
