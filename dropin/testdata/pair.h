// Helpers of the test programs: the first device, and pairs of connected queue pairs in one process.
#ifndef PAIR_H
#define PAIR_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// CHECK ends the program with the place and errno unless the condition holds.
#define CHECK(condition)                                                                                          \
	do {                                                                                                      \
		if (!(condition)) {                                                                               \
			fprintf(stderr, "%s:%d: %s: errno %d (%s)\n", __FILE__, __LINE__, #condition, errno,      \
				strerror(errno));                                                                 \
			exit(1);                                                                                  \
		}                                                                                                 \
	} while (0)

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static inline struct ibv_context *open_first(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	CHECK(list && count > 0);
	struct ibv_context *context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

static inline struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq, enum ibv_qp_type type, int depth)
{
	struct ibv_qp_init_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = depth;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 2;
	attr.cap.max_inline_data = 64;
	attr.qp_type = type;
	return ibv_create_qp(pd, &attr);
}

static inline int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = ALL_ACCESS;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static inline int to_rtr(struct ibv_qp *qp, uint32_t remote)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = remote;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.hop_limit = 4;
	if (ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid))
		return errno;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static inline int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 18; // 1 s: threads that poll share few processors
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline int to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.qp_state = IBV_QPS_ERR;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

// connect_qps connects two RC queue pairs of the device.
static inline void connect_qps(struct ibv_qp *a, struct ibv_qp *b)
{
	struct ibv_qp *both[] = {a, b};
	for (int i = 0; i < 2; i++)
		CHECK(!to_init(both[i]));
	for (int i = 0; i < 2; i++) {
		CHECK(!to_rtr(both[i], both[1 - i]->qp_num));
		CHECK(!to_rts(both[i]));
	}
}

static inline int post_write(struct ibv_qp *qp, struct ibv_mr *from, struct ibv_mr *to, uint32_t length, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)from->addr, length, from->lkey};
	struct ibv_send_wr wr, *bad;
	memset(&wr, 0, sizeof wr);
	wr.wr_id = id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
	wr.wr.rdma.rkey = to->rkey;
	return ibv_post_send(qp, &wr, &bad);
}

static inline int post_send(struct ibv_qp *qp, struct ibv_mr *from, uint32_t length, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)from->addr, length, from->lkey};
	struct ibv_send_wr wr, *bad;
	memset(&wr, 0, sizeof wr);
	wr.wr_id = id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
	return ibv_post_send(qp, &wr, &bad);
}

static inline int post_recv(struct ibv_qp *qp, struct ibv_mr *to, uint32_t length, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)to->addr, length, to->lkey};
	struct ibv_recv_wr wr = {id, NULL, &sge, 1}, *bad;
	return ibv_post_recv(qp, &wr, &bad);
}

// poll_one waits for a completion, and returns its status.
static inline enum ibv_wc_status poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n;
	while (!(n = ibv_poll_cq(cq, 1, wc)))
		;
	CHECK(n == 1);
	return wc->status;
}

#endif
